import { PathExt } from '@jupyterlab/coreutils';
import { historyIcon } from '@jupyterlab/ui-components';
import { useCallback, useLayoutEffect, useRef, useState } from 'react';
import type { ReactElement, RefObject } from 'react';

import { Announcer } from './announcer';
import { Banners } from './banners';
import { Composer } from './composer';
import { useFramedSignal, usePanel, useSignal } from './context';
import { History } from './history';
import { ModelSetup, ModelsAndKeys } from './modelsetup';
import { runningRun } from '../model/pictures';
import type { INotebookPicture } from '../model/pictures';
import type { IModelInfo, IRunSummary, IStatus } from '../channel/rest';
import { Timeline } from './timeline';
import { WaitingList } from './waitinglist';
import { Welcome, chosenModel } from './welcome';

/** What the panel shows, apart from what the analyst knows. */
export interface IViewState {
  readonly page: 'runs' | 'history' | 'models';
  /** A past run that the person asked to see. */
  readonly shownRun: string | null;
  /** Grows when the question field is to take the focus. */
  readonly focusCount: number;
  /** Whether the person has had the panel before them. */
  readonly wasShown: boolean;
}

/** The whole panel. */
export function PanelView(props: {
  state: IViewState;
  onPage: (page: IViewState['page']) => void;
  onShowRun: (run: IRunSummary) => void;
}): ReactElement {
  const { analyst } = usePanel();
  const { onPage, onShowRun, state } = props;
  const path = useSignal(
    analyst.currentChanged,
    useCallback(() => analyst.currentPath, [analyst])
  );
  const notebook = useFramedSignal(
    analyst.model.changed,
    useCallback(() => analyst.model.notebook(path), [analyst, path])
  );
  const isConnected = useSignal(
    analyst.stateChanged,
    useCallback(() => analyst.isConnected, [analyst])
  );
  const status = useSignal(
    analyst.stateChanged,
    useCallback(() => analyst.status, [analyst])
  );
  const modelsButton = useRef<HTMLButtonElement>(null);
  const [handedOn, setHandedOn] = useState(0);
  // What has ended hands the focus on to the question.
  const handOn = () => setHandedOn(count => count + 1);
  const isModels = state.page === 'models';
  const closeModels = () => {
    onPage('runs');
    modelsButton.current?.focus();
  };
  return (
    <div className="jp-dm-View" data-testid="dm-panel">
      <Header
        path={path}
        isHistory={state.page === 'history'}
        onPage={onPage}
      />
      <Banners notebook={notebook} isConnected={isConnected} onLeft={handOn} />
      <Scroller notebook={notebook}>
        {state.page === 'history' ? (
          <History path={path} onShow={onShowRun} />
        ) : isModels ? (
          <Models status={status} onClose={closeModels} />
        ) : (
          <Runs
            notebook={notebook}
            shownRun={state.shownRun}
            status={status}
            wasShown={state.wasShown}
            onLeft={handOn}
          />
        )}
      </Scroller>
      <Announcer run={notebook.runs[notebook.runs.length - 1] ?? null} />
      <WaitingList path={path} isConnected={isConnected} onLeft={handOn} />
      <Composer
        notebook={notebook}
        status={status}
        isConnected={isConnected}
        focusCount={state.focusCount + handedOn}
        modelsButton={modelsButton}
        isModels={isModels}
        onModels={() => (isModels ? closeModels() : onPage('models'))}
      />
    </div>
  );
}

/** Returns the model that the next question goes to. */
function useChosenModel(status: IStatus | null): IModelInfo | null {
  const { choices } = usePanel().analyst;
  const choice = useSignal(
    choices.changed,
    useCallback(() => choices.model, [choices])
  );
  return chosenModel(status, choice);
}

function Models(props: {
  status: IStatus | null;
  onClose: () => void;
}): ReactElement {
  const model = useChosenModel(props.status);
  return <ModelsAndKeys name={model?.name ?? ''} onClose={props.onClose} />;
}

/** The notebook's runs, or what to know before the first; above both what a model lacks. */
function Runs(props: {
  notebook: INotebookPicture;
  shownRun: string | null;
  status: IStatus | null;
  wasShown: boolean;
  /** The question takes the focus, which was on something that has ended. */
  onLeft: () => void;
}): ReactElement {
  const { analyst } = usePanel();
  const { notebook, onLeft, shownRun, status, wasShown } = props;
  const error = useSignal(
    analyst.stateChanged,
    useCallback(() => analyst.statusError, [analyst])
  );
  const { past, path, pending, runs } = notebook;
  const model = useChosenModel(status);
  return (
    <>
      {model && !model.is_present && (
        <ModelSetup name={model.name} onDone={onLeft} />
      )}
      {runs.length + past.length === 0 && !pending ? (
        <Welcome
          path={path}
          status={status}
          error={error}
          wasShown={wasShown}
        />
      ) : (
        <Timeline notebook={notebook} shownRun={shownRun} onLeft={onLeft} />
      )}
    </>
  );
}

function Header(props: {
  path: string;
  isHistory: boolean;
  onPage: (page: IViewState['page']) => void;
}): ReactElement {
  const { trans } = usePanel();
  const { isHistory, onPage, path } = props;
  const hint = isHistory
    ? trans.__('Back to this notebook’s runs')
    : trans.__('History of runs');
  return (
    <div className="jp-dm-Header">
      <h2>{trans.__('Data analyst')}</h2>
      <span className="jp-dm-Notebook" title={path}>
        {PathExt.basename(path)}
      </span>
      <button
        type="button"
        className="jp-dm-IconButton"
        aria-label={hint}
        aria-pressed={isHistory}
        title={hint}
        onClick={() => onPage(isHistory ? 'runs' : 'history')}
      >
        <historyIcon.react tag="span" />
      </button>
    </div>
  );
}

/**
 * Keeps its end in sight while the run writes, unless the person has scrolled up, and until the
 * person clicks something after its end.
 */
function Scroller(props: {
  notebook: INotebookPicture;
  children: ReactElement;
}): ReactElement {
  const { trans } = usePanel();
  const outer = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const { past, path, pending, runs } = props.notebook;
  const isAtWork = pending !== null || runningRun(props.notebook) !== null;
  const shown = runs.length + past.length > 0 ? path : null;
  useStickToEnd(outer, inner, shown, isAtWork);
  return (
    <div
      ref={outer}
      className="jp-dm-Scroller"
      role="region"
      aria-label={trans.__('Runs')}
      // What scrolls must be reached with the keyboard.
      tabIndex={0}
    >
      <div ref={inner}>{props.children}</div>
    </div>
  );
}

const NEAR_END_PX = 40;

function useStickToEnd(
  outer: RefObject<HTMLElement>,
  inner: RefObject<HTMLElement>,
  /** The notebook's; `null` before its first run, when the beginning is what to read. */
  path: string | null,
  isAtWork: boolean
): void {
  const isWriting = useRef(isAtWork);
  isWriting.current = isAtWork;
  useLayoutEffect(() => {
    const frame = outer.current;
    const content = inner.current;
    if (!frame || !content || path === null) {
      return;
    }
    let isAtEnd = true;
    // The answer may be drawn a while after the run's end.
    let isStuck = true;
    const onClick = () => {
      isStuck = isWriting.current;
    };
    const onScroll = () => {
      const rest = frame.scrollHeight - frame.scrollTop - frame.clientHeight;
      isAtEnd = rest < NEAR_END_PX;
    };
    const observer = new ResizeObserver(() => {
      isStuck ||= isWriting.current;
      if (isAtEnd && isStuck) {
        frame.scrollTop = frame.scrollHeight;
      }
    });
    frame.addEventListener('scroll', onScroll, { passive: true });
    frame.addEventListener('click', onClick, { capture: true });
    observer.observe(content);
    // The field below may grow and leave less room.
    observer.observe(frame);
    return () => {
      frame.removeEventListener('scroll', onScroll);
      frame.removeEventListener('click', onClick, { capture: true });
      observer.disconnect();
    };
  }, [inner, outer, path]);
}
