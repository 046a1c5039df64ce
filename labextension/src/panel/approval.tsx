import { useCallback, useId, useRef, useState } from 'react';
import type { ReactElement, RefObject } from 'react';

import { liveSource } from '../notebook/cells';
import { useFocusLost, usePanel, useSignal } from './context';
import { FileList } from './filechanges';
import { countWords } from '../model/filewords';
import { invisibleIn } from '../model/invisible';
import { Code } from './markdown';
import type { IFileChange } from '../protocol.gen';
import { asSentence } from '../model/wording';

/** Asks the person about a cell that waits: run it, run it changed, or leave it out. */
export function Approval(props: {
  runId: string;
  cellId: string;
  because: string;
  source: string;
  language: string;
  /** Takes the focus when the person has decided, and the buttons go. */
  focusAfter: RefObject<HTMLElement>;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { because, cellId, focusAfter, language, runId, source } = props;
  const { drafts } = analyst;
  const key = `${runId} ${cellId}`;
  const [edited, setEdited] = useState(() => drafts.kept(key));
  const live = useLiveSource(runId, cellId) ?? source;
  const reasonId = useId();
  const isEditing = edited !== null;
  const group = useRef<HTMLDivElement>(null);
  useFocusLost(group, () => focusAfter.current?.focus());

  const edit = (text: string | null) => {
    drafts.keep(key, text);
    setEdited(text);
  };
  const reason = asSentence(because).replace(/\.?$/, '.');

  return (
    <div
      ref={group}
      role="group"
      aria-labelledby={reasonId}
      className="jp-dm-Approval"
    >
      <p id={reasonId}>{trans.__('Run this cell? %1', reason)}</p>
      {edited === null ? (
        <Code source={live} language={language} />
      ) : (
        <CellEditor text={edited} onEdit={edit} />
      )}
      {edited !== null && <InvisibleSigns text={edited} />}
      {!isEditing && live !== source && (
        <p data-testid="dm-changed-in-notebook">
          {trans.__('This is the cell as you changed it in the notebook.')}
        </p>
      )}
      <div className="jp-dm-Buttons">
        <button
          type="button"
          className="jp-dm-Button jp-mod-accept"
          data-testid="dm-approve"
          // What was shown runs, whatever the notebook has by then.
          onClick={() =>
            analyst.decide(runId, cellId, 'approve', edited ?? live)
          }
        >
          {isEditing ? trans.__('Run the edited cell') : trans.__('Run')}
        </button>
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-edit"
          onClick={() => edit(isEditing ? null : live)}
        >
          {isEditing ? trans.__('Leave as it was') : trans.__('Edit')}
        </button>
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-skip"
          onClick={() => analyst.decide(runId, cellId, 'skip')}
        >
          {trans.__('Skip')}
        </button>
      </div>
    </div>
  );
}

/** Returns the text that a cell has in the open notebook now; `null` where it is not there. */
function useLiveSource(runId: string, cellId: string): string | null {
  const { analyst } = usePanel();
  const { currentChanged, model } = analyst;
  const panel = useSignal(
    currentChanged,
    useCallback(
      () => analyst.panel(model.pathOf(runId) ?? ''),
      [analyst, model, runId]
    )
  );
  return useSignal(
    panel?.content.model?.contentChanged ?? currentChanged,
    useCallback(() => liveSource(panel, cellId), [panel, cellId])
  );
}

/** Asks the person whether what a cell did to files may reach their folder. */
export function FilesApproval(props: {
  runId: string;
  cellId: string;
  files: readonly IFileChange[];
  /** Takes the focus when the person has decided, and the buttons go. */
  focusAfter: RefObject<HTMLElement>;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { cellId, files, focusAfter, runId } = props;
  const reasonId = useId();
  const group = useRef<HTMLDivElement>(null);
  useFocusLost(group, () => focusAfter.current?.focus());
  const counts = countWords(files, waits, trans);
  return (
    <div
      ref={group}
      role="group"
      aria-labelledby={reasonId}
      className="jp-dm-Approval"
      data-testid="dm-files-approval"
    >
      <p id={reasonId}>
        {trans.__(
          'What this cell did to files waits for you: %1. Your folder has none of it yet.',
          counts
        )}
      </p>
      <FileList runId={runId} files={files} fateOf={waits} />
      <div className="jp-dm-Buttons">
        <button
          type="button"
          className="jp-dm-Button jp-mod-accept"
          data-testid="dm-files-apply"
          onClick={() => analyst.decideFiles(runId, cellId, true)}
        >
          {trans.__('Apply')}
        </button>
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-files-discard"
          onClick={() => analyst.decideFiles(runId, cellId, false)}
        >
          {trans.__('Discard')}
        </button>
      </div>
    </div>
  );
}

const waits = () => 'waits' as const;

/** What the field can't show of its text. */
function InvisibleSigns(props: { text: string }): ReactElement | null {
  const { trans } = usePanel();
  const signs = invisibleIn(props.text).join(', ');
  return signs ? (
    <p role="status">
      {trans.__('This text has invisible characters: %1', signs)}
    </p>
  ) : null;
}

/** The cell's text, to change. */
function CellEditor(props: {
  text: string;
  onEdit: (text: string) => void;
}): ReactElement {
  const { trans } = usePanel();
  const { onEdit, text } = props;
  return (
    <textarea
      autoFocus
      aria-label={trans.__('Text of the cell')}
      className="jp-dm-Code"
      rows={Math.min(16, text.split('\n').length + 1)}
      spellCheck={false}
      value={text}
      onChange={event => onEdit(event.target.value)}
    />
  );
}
