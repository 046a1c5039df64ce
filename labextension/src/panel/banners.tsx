import { closeIcon } from '@jupyterlab/ui-components';
import { useId, useRef } from 'react';
import type { ReactElement } from 'react';

import { useFocusLost, usePanel } from './context';
import { leftOutWords } from '../model/filewords';
import { LinkList } from './linkchoice';
import { runningRun } from '../model/pictures';
import type { INotebookPicture } from '../model/pictures';
import { asSentence } from '../model/wording';

/** What the person should know before anything else about the notebook. */
export function Banners(props: {
  notebook: INotebookPicture;
  isConnected: boolean;
  /** The question takes the focus, which was on something that goes. */
  onLeft: () => void;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { isConnected, notebook, onLeft } = props;
  const { path } = notebook;
  const isRunning = notebook.runs.some(run => run.state === 'running');
  const isWatcher =
    isConnected && notebook.isOwner === false && !notebook.isShared;
  return (
    // Each is said aloud when it comes, not all of them again.
    <div className="jp-dm-Banners" role="status" aria-atomic="false">
      {!isConnected && (
        <p className="jp-dm-Banner" data-testid="dm-offline-banner">
          {isRunning
            ? trans.__('Connection lost; the run goes on. Connecting again…')
            : trans.__('No connection to the analyst. Connecting again…')}
        </p>
      )}
      {isWatcher && (
        <div className="jp-dm-Banner" data-testid="dm-owner-banner">
          <p>{trans.__('Another tab writes this notebook.')}</p>
          <button
            type="button"
            className="jp-dm-Button"
            onClick={() => analyst.takeOver(path)}
          >
            {trans.__('Write here instead')}
          </button>
        </div>
      )}
      {notebook.wanted && <WantedFiles notebook={notebook} onLeft={onLeft} />}
      {notebook.leftOut.length > 0 && (
        <Dismissable
          id="dm-left-out"
          text={leftOutWords(notebook.leftOut, trans)}
          onDismiss={() => analyst.model.dismissLeftOut(path)}
          onLeft={onLeft}
        />
      )}
      {notebook.refusal && notebook.refusal.reason !== 'data' && (
        <Dismissable
          text={asSentence(notebook.refusal.message)}
          onDismiss={() => analyst.model.settle(path)}
          onLeft={onLeft}
        />
      )}
      {notebook.notices.map(notice => (
        <Dismissable
          key={notice.id}
          text={asSentence(notice.text)}
          onDismiss={() => analyst.model.dismiss(path, notice.id)}
          onLeft={onLeft}
        />
      ))}
    </div>
  );
}

/** What code in the kernel wants asked, about files that only the person can have read. */
function WantedFiles(props: {
  notebook: INotebookPicture;
  onLeft: () => void;
}): ReactElement | null {
  const { analyst, trans } = usePanel();
  const { notebook, onLeft } = props;
  const { path, pending, wanted } = notebook;
  const titleId = useId();
  const banner = useRef<HTMLDivElement>(null);
  useFocusLost(banner, onLeft);
  if (!wanted) {
    return null;
  }
  const isBusy = pending !== null || runningRun(notebook) !== null;
  return (
    <div
      ref={banner}
      role="group"
      aria-labelledby={titleId}
      className="jp-dm-Banner jp-mod-tall"
      data-testid="dm-wanted"
    >
      <p id={titleId}>
        {trans.__(
          'Code in this notebook’s kernel wants this asked about files of which it can’t read all itself. If you ask, it gets to see what is in them.'
        )}
      </p>
      <blockquote
        className="jp-dm-Wanted-question"
        aria-live="off"
        tabIndex={0}
      >
        {wanted.question}
      </blockquote>
      <LinkList files={wanted.files} trans={trans} />
      <div className="jp-dm-Buttons">
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-wanted-ask"
          disabled={isBusy || !analyst.isConnected}
          onClick={() => void analyst.askWanted(path)}
        >
          {trans.__('Ask')}
        </button>
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-wanted-dismiss"
          onClick={() => analyst.model.unwant(path)}
        >
          {trans.__('Dismiss')}
        </button>
      </div>
    </div>
  );
}

function Dismissable(props: {
  id?: string;
  text: string;
  onDismiss: () => void;
  onLeft: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const banner = useRef<HTMLDivElement>(null);
  useFocusLost(banner, props.onLeft);
  return (
    <div ref={banner} className="jp-dm-Banner" data-testid={props.id}>
      <p>{props.text}</p>
      <button
        type="button"
        className="jp-dm-IconButton"
        aria-label={trans.__('Dismiss')}
        title={trans.__('Dismiss')}
        onClick={props.onDismiss}
      >
        <closeIcon.react tag="span" />
      </button>
    </div>
  );
}
