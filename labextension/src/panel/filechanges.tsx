import { PathExt } from '@jupyterlab/coreutils';
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { useCallback, useId, useState } from 'react';
import type { ReactElement } from 'react';

import { usePanel, useSignal } from './context';
import {
  changeWords,
  countWords,
  inOrder,
  unseenWords,
  viewerOf
} from '../model/filewords';
import type { Fate } from '../model/filewords';
import { shownPath } from '../model/invisible';
import type { IStepPicture } from '../model/pictures';
import type { IFileChange, IKernelMeter } from '../protocol.gen';
import { folderOf } from '../model/workspace';

/** More are folded away. */
const SHOWN = 5;
/** A cell can make any number. */
const MOST = 500;

/** What a cell that has ended did to files of the notebook's folder. */
export function FileChanges(props: {
  runId: string;
  step: IStepPicture;
}): ReactElement {
  const { trans } = usePanel();
  const { runId, step } = props;
  const { discarded, files } = step;
  const [isOpen, setIsOpen] = useState(files.length <= SHOWN);
  const listId = useId();
  const fateOf = (file: IFileChange): Fate => {
    if (file.state === 'written') {
      return 'written';
    }
    return discarded.includes(file.path) ? 'discarded' : 'refused';
  };
  const counts = countWords(files, fateOf, trans);
  const title = trans._n('%1 file: %2', '%1 files: %2', files.length, counts);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <div className="jp-dm-FileChanges" data-testid="dm-files">
      {files.length > SHOWN ? (
        <button
          type="button"
          className="jp-dm-Fold"
          aria-expanded={isOpen}
          aria-controls={listId}
          onClick={() => setIsOpen(!isOpen)}
        >
          <Caret.react tag="span" className="jp-dm-Caret" />
          {title}
        </button>
      ) : (
        <p>{title}</p>
      )}
      <div id={listId} hidden={!isOpen}>
        {isOpen && <FileList runId={runId} files={files} fateOf={fateOf} />}
      </div>
    </div>
  );
}

/** Files with what became of each, those that are lost first. */
export function FileList(props: {
  runId: string;
  files: readonly IFileChange[];
  fateOf: (file: IFileChange) => Fate;
}): ReactElement {
  const { trans } = usePanel();
  const { fateOf, files, runId } = props;
  const more = files.length - MOST;
  return (
    // What scrolls must be reached with the keyboard.
    <ul
      className="jp-dm-FileList"
      aria-label={trans.__('Files')}
      tabIndex={files.length > SHOWN ? 0 : undefined}
    >
      {inOrder(files)
        .slice(0, MOST)
        .map(file => (
          <li key={file.path} data-testid="dm-file" data-fate={fateOf(file)}>
            <FileName runId={runId} file={file} fate={fateOf(file)} />{' '}
            <span className="jp-dm-FileWords">
              {changeWords(file, fateOf(file), trans)}
            </span>
          </li>
        ))}
      {more > 0 && <li>{trans.__('and %1 more', more)}</li>}
    </ul>
  );
}

/** The file's name; a click opens what only shows data. */
function FileName(props: {
  runId: string;
  file: IFileChange;
  fate: Fate;
}): ReactElement {
  const { analyst, trans, workspace } = usePanel();
  const { fate, file, runId } = props;
  const viewer = viewerOf(file, fate);
  const name = shownPath(file.path);
  if (!viewer) {
    return <span className="jp-dm-FileName">{name}</span>;
  }
  const open = async () => {
    const notebook = analyst.model.pathOf(runId) ?? '';
    const path = PathExt.join(folderOf(notebook), file.path);
    try {
      await analyst.contents.get(path, { content: false });
      await workspace.openFile(path, viewer);
    } catch {
      const text = trans.__('There is no %1 in the notebook’s folder.', name);
      analyst.model.notify(notebook, text);
    }
  };
  return (
    <button
      type="button"
      className="jp-dm-Link jp-dm-FileName"
      aria-label={trans.__('Open %1', name)}
      onClick={() => void open()}
    >
      {name}
    </button>
  );
}

/** Says below the choice of waiting cells what nobody sees of their writing, where that is so. */
export function UnseenWrites(props: {
  meter: IKernelMeter | null;
}): ReactElement | null {
  const { analyst, trans } = usePanel();
  const { choices } = analyst;
  const approval = useSignal(
    choices.changed,
    useCallback(() => choices.approval, [choices])
  );
  const words = unseenWords(props.meter, trans);
  return words && approval !== 'ask' ? (
    <p className="jp-dm-Warning" data-testid="dm-unseen-writes">
      {words}
    </p>
  ) : null;
}
