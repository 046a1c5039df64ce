import { Dialog, showDialog } from '@jupyterlab/apputils';
import { useCallback, useEffect, useState } from 'react';
import type { ReactElement } from 'react';

import { usePanel } from './context';
import { stateOfStop } from '../model/reduce';
import type { ExportFormat, IRunSummary } from '../channel/rest';
import { StatusMark } from './steps';
import { answeredByWords, stateWords } from '../model/wording';

const SEARCH_DELAY_MS = 250;

/** The runs of former days: searched, shown again, exported, deleted. */
export function History(props: {
  path: string;
  onShow: (run: IRunSummary) => void;
}): ReactElement {
  const { trans } = usePanel();
  const { onShow, path } = props;
  const [query, setQuery] = useState('');
  const [isEverywhere, setIsEverywhere] = useState(path === '');
  const { error, refresh, runs } = useRuns(isEverywhere ? '' : path, query);
  return (
    <section
      className="jp-dm-History"
      data-testid="dm-history"
      aria-label={trans.__('History')}
    >
      <input
        type="search"
        className="jp-dm-Search"
        aria-label={trans.__('Search questions and answers')}
        placeholder={trans.__('Search questions and answers')}
        value={query}
        onChange={event => setQuery(event.target.value)}
      />
      {path !== '' && (
        <label>
          <input
            type="checkbox"
            checked={isEverywhere}
            onChange={event => setIsEverywhere(event.target.checked)}
          />{' '}
          {trans.__('All notebooks')}
        </label>
      )}
      {error && <p className="jp-dm-Warning">{error}</p>}
      {runs?.length === 0 && <p>{trans.__('No runs.')}</p>}
      <ul className="jp-dm-HistoryList">
        {runs?.map(run => (
          <HistoryItem
            key={run.run_id}
            run={run}
            onShow={onShow}
            onChange={refresh}
          />
        ))}
      </ul>
    </section>
  );
}

function HistoryItem(props: {
  run: IRunSummary;
  onShow: (run: IRunSummary) => void;
  onChange: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { onChange, onShow, run } = props;
  const { exportRun, remove } = useRunActions(run, onChange);
  const words = stateWords(stateOfStop(run.stop), trans);
  const answeredBy = answeredByWords(run, trans);
  const actions: [string, () => void][] = [
    [trans.__('Show'), () => onShow(run)],
    [trans.__('Notebook'), () => exportRun('notebook')],
    [trans.__('Trajectory'), () => exportRun('trajectory')],
    [trans.__('Delete'), remove]
  ];
  const hints = [
    trans.__('Show the run “%1”', run.question),
    trans.__('Export “%1” as a notebook', run.question),
    trans.__('Export “%1” as a trajectory (JSONL)', run.question),
    trans.__('Delete “%1”', run.question)
  ];
  return (
    <li>
      <p className="jp-dm-Question">{run.question}</p>
      {run.answer && <p className="jp-dm-Snippet">{run.answer}</p>}
      <p className="jp-dm-Meter">
        <StatusMark words={words} isBrief={false} /> · {run.notebook_path} ·{' '}
        {new Date(run.at * 1000).toLocaleString()}
        {answeredBy && ` · ${answeredBy}`}
      </p>
      <div className="jp-dm-Buttons">
        {actions.map(([label, act], index) => (
          <button
            key={label}
            type="button"
            className="jp-dm-Button"
            aria-label={hints[index]}
            title={hints[index]}
            onClick={act}
          >
            {label}
          </button>
        ))}
      </div>
    </li>
  );
}

/** What can be done with a listed run. */
function useRunActions(
  run: IRunSummary,
  onChange: () => void
): { exportRun: (format: ExportFormat) => void; remove: () => void } {
  const { analyst, trans } = usePanel();
  const failed = (error: Error) =>
    analyst.model.notify(analyst.currentPath, error.message);
  const exportRun = (format: ExportFormat) => {
    analyst.rest.export(run.run_id, format).then(download, failed);
  };
  const removeNow = async () => {
    const answer = await showDialog({
      title: trans.__('Delete this run from the history?'),
      body: trans.__('“%1”. Its cells stay in the notebook.', run.question),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Delete') })
      ]
    });
    if (answer.button.accept) {
      await analyst.rest.remove(run.run_id);
      analyst.model.remove(run.notebook_path, run.run_id);
      onChange();
    }
  };
  return { exportRun, remove: () => void removeNow().catch(failed) };
}

/** Hands a file to the browser's downloads. */
export function download(file: { name: string; content: Blob }): void {
  const url = URL.createObjectURL(file.content);
  const link = document.createElement('a');
  link.href = url;
  link.download = file.name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Lists the runs that the query fits, some moments after the last key. */
function useRuns(
  path: string,
  query: string
): {
  runs: readonly IRunSummary[] | null;
  error: string;
  refresh: () => void;
} {
  const { analyst } = usePanel();
  const [runs, setRuns] = useState<readonly IRunSummary[] | null>(null);
  const [error, setError] = useState('');
  const [count, setCount] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    const timer = window.setTimeout(() => {
      analyst.rest.runs(path, query).then(
        found => {
          if (isCurrent) {
            setRuns(found);
            setError('');
          }
        },
        failure => {
          if (isCurrent) {
            setError(failure.message);
          }
        }
      );
    }, SEARCH_DELAY_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [analyst, count, path, query]);
  const refresh = useCallback(() => setCount(value => value + 1), []);
  return { runs, error, refresh };
}
