import { closeIcon } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import { usePanel } from './context';
import type { INotebookPicture } from './pictures';
import { asSentence } from './wording';

/** What the person should know before anything else about the notebook. */
export function Banners(props: {
  notebook: INotebookPicture;
  isConnected: boolean;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { isConnected, notebook } = props;
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
      {notebook.refusal && (
        <Dismissable
          text={asSentence(notebook.refusal.message)}
          onDismiss={() => analyst.model.settle(path)}
        />
      )}
      {notebook.notices.map(notice => (
        <Dismissable
          key={notice.id}
          text={asSentence(notice.text)}
          onDismiss={() => analyst.model.dismiss(path, notice.id)}
        />
      ))}
    </div>
  );
}

function Dismissable(props: {
  text: string;
  onDismiss: () => void;
}): ReactElement {
  const { trans } = usePanel();
  return (
    <div className="jp-dm-Banner">
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
