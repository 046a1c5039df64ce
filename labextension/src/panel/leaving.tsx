import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { useCallback, useEffect, useState } from 'react';
import type { ReactElement } from 'react';

import { PARTS } from '../model/choices';
import { usePanel, useSignal } from './context';
import type { IDraft } from '../model/draft';
import type { IModelInfo, IStatus, IToldPart } from '../channel/rest';
import { partTitles } from './told';
import { chosenModel } from './welcome';

/** For several keys, or switches, that are pressed one after another. */
const QUIET_MS = 300;

/** Says, where the question is sent from, what leaves the machine with it. */
export function Leaving(props: {
  path: string;
  status: IStatus | null;
  draft: IDraft;
}): ReactElement | null {
  const { analyst, trans } = usePanel();
  const { choices } = analyst;
  const choice = useSignal(
    choices.changed,
    useCallback(() => choices.model, [choices])
  );
  const model = chosenModel(props.status, choice);
  if (!model) {
    return null;
  }
  return model.is_local ? (
    <p className="jp-dm-Leaving">{trans.__('Nothing leaves this machine.')}</p>
  ) : (
    <Sends path={props.path} model={model} draft={props.draft} />
  );
}

/** What goes to an endpoint, in a line; unfolded word for word, with a switch for each part. */
function Sends(props: {
  path: string;
  model: IModelInfo;
  draft: IDraft;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { draft, model, path } = props;
  const { choices } = analyst;
  const withheld = useSignal(
    choices.changed,
    useCallback(() => choices.withheld, [choices])
  );
  const hasPictures = useSignal(
    choices.changed,
    useCallback(() => choices.sampling.pictures === true, [choices])
  );
  const [isOpen, setOpen] = useState(false);
  const isWriting = draft.text !== '' || isOpen;
  const parts = usePreview(path, isWriting, draft, withheld, model.name);
  const titles = partTitles(trans);
  return (
    <details
      className="jp-dm-Leaving jp-dm-Told"
      data-testid="dm-leaving"
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{sendsWords(model.label, draft, parts, trans)}</summary>
      {parts
        ?.filter(({ kind }) => !PARTS.some(part => part === kind))
        .map(({ kind, text }, index) => (
          <Part key={index} title={titles[kind] ?? kind} text={text} />
        ))}
      {PARTS.map(part => (
        <div key={part}>
          <label>
            <input
              type="checkbox"
              data-testid={`dm-tell-${part}`}
              checked={!withheld.includes(part)}
              onChange={event => choices.tell(part, event.target.checked)}
            />
            {titles[part]}
          </label>
          <Part
            title={titles[part]}
            text={parts?.find(({ kind }) => kind === part)?.text ?? ''}
          />
        </div>
      ))}
      <p>
        {hasPictures
          ? trans.__(
              'Names, types and samples of the columns in the files that you name go along, and then what the cells print and the figures that they draw.'
            )
          : trans.__(
              'Names, types and samples of the columns in the files that you name go along, and then what the cells print.'
            )}
      </p>
    </details>
  );
}

function Part(props: { title: string; text: string }): ReactElement | null {
  const { text, title } = props;
  return text ? (
    <section aria-label={title}>
      <pre tabIndex={0}>{text}</pre>
    </section>
  ) : null;
}

/** Asks the server what would be told; `null` until it is known. */
function usePreview(
  path: string,
  isWanted: boolean,
  draft: IDraft,
  withheld: readonly string[],
  model: string
): readonly IToldPart[] | null {
  const { analyst } = usePanel();
  const cell = useSignal(
    analyst.cellSelected,
    useCallback(() => analyst.selectedCell(path), [analyst, path])
  );
  const [parts, setParts] = useState<readonly IToldPart[] | null>(null);
  const { files, variables } = draft;
  useEffect(() => {
    if (!isWanted || !path) {
      setParts(null);
      return;
    }
    let isCurrent = true;
    const take = (found: readonly IToldPart[] | null) =>
      isCurrent && setParts(found);
    const timer = setTimeout(() => {
      analyst.preview(path).then(take, () => take(null));
    }, QUIET_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [analyst, cell, files, isWanted, model, path, variables, withheld]);
  return parts;
}

function sendsWords(
  label: string,
  draft: IDraft,
  parts: readonly IToldPart[] | null,
  trans: TranslationBundle
): string {
  if (!parts) {
    return trans.__(
      'Goes to %1, with samples, outputs and the notebook around it.',
      label
    );
  }
  const count = (wanted: string) =>
    parts
      .filter(({ kind }) => kind === wanted)
      .reduce((sum, part) => sum + part.count, 0);
  const some = (number: number, words: string) => (number ? [words] : []);
  const cells = count('cells');
  const variables = count('variables');
  const files = count('files');
  const about = draft.files.map(file => PathExt.basename(file)).join(', ');
  const things = [
    trans.__('the question'),
    ...some(draft.files.length, trans.__('columns and examples of %1', about)),
    ...some(count('selection'), trans.__('the selected cell')),
    ...some(cells, trans._n('%1 cell', '%1 cells', cells)),
    ...some(
      variables + count('data'),
      trans._n('%1 variable', '%1 variables', variables + count('data'))
    ),
    ...some(files, trans._n('%1 file name', '%1 file names', files)),
    ...some(count('earlier'), trans.__('what was asked before'))
  ];
  return trans.__('Sends to %1: %2', label, things.join(', '));
}
