import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import { usePanel } from './context';
import type { IRunPicture } from '../model/pictures';

/** What the parts are called of which a model is told. */
export function partTitles(trans: TranslationBundle): {
  readonly [kind: string]: string;
} {
  return {
    data: trans.__('The data'),
    links: trans.__('Words of the question in the data'),
    earlier: trans.__('Asked before'),
    changes: trans.__('Changed since'),
    selection: trans.__('The selected cell'),
    variables: trans.__('Variables'),
    cells: trans.__('Cells'),
    files: trans.__('Files near by')
  };
}

/** Everything that the model was told beside the question, for whoever wants to look. */
export function Told(props: { run: IRunPicture }): ReactElement | null {
  const { trans } = usePanel();
  const { told } = props.run;
  const titles = partTitles(trans);
  if (told.length === 0) {
    return null;
  }
  return (
    <>
      <Changes text={told.find(({ kind }) => kind === 'changes')?.text ?? ''} />
      <details className="jp-dm-Told" data-testid="dm-told">
        <summary>{trans.__('What the model saw')}</summary>
        {told.map(({ kind, text }, index) => (
          <section key={index} aria-label={titles[kind] ?? kind}>
            <h5>{titles[kind] ?? kind}</h5>
            <pre tabIndex={0}>{text}</pre>
          </section>
        ))}
        <p>
          {trans.__(
            'Each part of the notebook can be switched off in the settings.'
          )}
        </p>
      </details>
    </>
  );
}

/** What has changed since the run before: it tells why an answer may differ. */
function Changes(props: { text: string }): ReactElement | null {
  const lines = props.text.split('\n').filter(line => line.startsWith('- '));
  return lines.length === 0 ? null : (
    <ul className="jp-dm-Changes" data-testid="dm-changes">
      {lines.map((line, index) => (
        <li key={index}>{line.slice(2)}</li>
      ))}
    </ul>
  );
}
