/**
 * The analyst's commands, and where they are found.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { historyIcon, stopIcon, undoIcon } from '@jupyterlab/ui-components';

import type { Analyst } from '../model/analyst';
import { errorOf, errorQuestion } from '../notebook/cells';
import { isDataFile } from '../notebook/completion';
import { analystIcon } from './icon';
import type { AnalystPanel } from './panel';
import { askOrKeep } from '../model/sending';
import { tidyNotebook } from './tidy';
import { runningRun } from '../model/pictures';
import type { IRunPicture } from '../model/pictures';
import type { Workspace } from '../model/workspace';

export namespace CommandIDs {
  export const ask = 'dm-jupyter:ask';
  export const stop = 'dm-jupyter:stop';
  export const undo = 'dm-jupyter:undo-run';
  export const tidy = 'dm-jupyter:tidy';
  export const history = 'dm-jupyter:show-history';
  export const newNotebook = 'dm-jupyter:new-notebook';
  export const analyzeFile = 'dm-jupyter:analyze-file';
  export const explainError = 'dm-jupyter:explain-error';
  export const fixError = 'dm-jupyter:fix-error';
}

/** What the commands work on. */
export interface ICommandOptions {
  readonly app: JupyterFrontEnd;
  readonly analyst: Analyst;
  readonly workspace: Workspace;
  readonly panel: AnalystPanel;
  readonly tracker: INotebookTracker;
  readonly browsers: IFileBrowserFactory | null;
  readonly palette: ICommandPalette | null;
  readonly trans: TranslationBundle;
}

const NO_ARGUMENTS = { type: 'object', properties: {} } as const;
const LAUNCHER_ARGUMENTS = {
  type: 'object',
  properties: {
    isLauncher: {
      type: 'boolean',
      description: 'Whether the command is a card of the launcher'
    }
  }
} as const;

export function addCommands(options: ICommandOptions): void {
  addPanelCommands(options);
  addRunCommands(options);
  addFileCommand(options);
  addErrorCommands(options);
  const { palette, trans } = options;
  const category = trans.__('Data analyst');
  for (const command of Object.values(CommandIDs)) {
    palette?.addItem({ command, category });
  }
}

/** Shows the panel with the caret in the question field. */
function openPanel({ app, panel }: ICommandOptions): void {
  app.shell.activateById(panel.id);
  panel.focusComposer();
}

function addPanelCommands(options: ICommandOptions): void {
  const { app, panel, trans, workspace } = options;
  const { commands } = app;
  commands.addCommand(CommandIDs.ask, {
    describedBy: { args: LAUNCHER_ARGUMENTS },
    label: args =>
      args.isLauncher
        ? trans.__('Ask about data')
        : trans.__('Ask the data analyst'),
    caption: trans.__(
      'Ask a question about a data file; a notebook is made for the answer'
    ),
    icon: analystIcon,
    execute: () => openPanel(options)
  });
  commands.addCommand(CommandIDs.history, {
    describedBy: { args: NO_ARGUMENTS },
    label: trans.__('Show the history of runs'),
    icon: historyIcon,
    execute: () => {
      app.shell.activateById(panel.id);
      panel.showHistory();
    }
  });
  commands.addCommand(CommandIDs.newNotebook, {
    describedBy: { args: NO_ARGUMENTS },
    label: trans.__('New notebook for analysis'),
    icon: analystIcon,
    execute: async () => {
      await workspace.newNotebook(workspace.folder);
      openPanel(options);
    }
  });
}

function addRunCommands(options: ICommandOptions): void {
  const { analyst, app, tracker, trans } = options;
  const { commands } = app;
  commands.addCommand(CommandIDs.tidy, {
    describedBy: { args: NO_ARGUMENTS },
    label: trans.__('Tidy the notebook'),
    caption: trans.__(
      'Run the cells that the last answer needs again and write them as a new notebook'
    ),
    isEnabled: () => tracker.currentWidget !== null,
    execute: async () => {
      const path = tracker.currentWidget?.context.localPath;
      if (path) {
        await tidyNotebook(path, '', options);
      }
    }
  });
  commands.addCommand(CommandIDs.stop, {
    describedBy: { args: NO_ARGUMENTS },
    label: trans.__('Stop the run'),
    icon: stopIcon,
    isEnabled: () => currentRun(analyst) !== null,
    execute: () => {
      const run = currentRun(analyst);
      if (run) {
        analyst.stop(run.runId);
      }
    }
  });
  commands.addCommand(CommandIDs.undo, {
    describedBy: { args: NO_ARGUMENTS },
    label: trans.__('Undo the last run'),
    icon: undoIcon,
    isEnabled: () => lastEndedRun(analyst) !== null,
    execute: () => {
      const run = lastEndedRun(analyst);
      if (run) {
        analyst.undo(run.runId);
      }
    }
  });
  const refresh = () => {
    commands.notifyCommandChanged(CommandIDs.stop);
    commands.notifyCommandChanged(CommandIDs.undo);
  };
  // Only what starts and ends runs matters, not each message of one.
  let shown = '';
  analyst.model.changed.connect((_, path) => {
    const states = analyst.model.notebook(path).runs.map(run => run.state);
    const now = `${path} ${states.join(' ')}`;
    if (now !== shown) {
      shown = now;
      refresh();
    }
  });
  analyst.currentChanged.connect(refresh);
}

function currentRun(analyst: Analyst): IRunPicture | null {
  return runningRun(analyst.model.notebook(analyst.currentPath));
}

function lastEndedRun(analyst: Analyst): IRunPicture | null {
  const { runs } = analyst.model.notebook(analyst.currentPath);
  const last = runs[runs.length - 1];
  return last && last.state !== 'running' && last.state !== 'undone'
    ? last
    : null;
}

function addFileCommand(options: ICommandOptions): void {
  const { app, browsers, panel, trans } = options;
  const selected = () =>
    Array.from(browsers?.tracker.currentWidget?.selectedItems() ?? [])
      .filter(item => item.type !== 'directory' && isDataFile(item.path))
      .map(item => item.path);
  app.commands.addCommand(CommandIDs.analyzeFile, {
    label: trans.__('Analyze this file'),
    icon: analystIcon,
    describedBy: { args: NO_ARGUMENTS },
    isVisible: () => selected().length > 0,
    isEnabled: () => selected().length > 0,
    execute: () => {
      panel.addFiles(selected());
      openPanel(options);
    }
  });
}

function addErrorCommands(options: ICommandOptions): void {
  const { analyst, app, tracker, trans } = options;
  const { commands } = app;
  const hasError = () => errorOf(tracker.activeCell) !== null;
  const ask = async (wish: 'explain' | 'fix') => {
    const panel = tracker.currentWidget;
    const error = errorOf(tracker.activeCell);
    if (panel && error) {
      app.shell.activateById(options.panel.id);
      const text = errorQuestion(error, wish);
      const path = panel.context.localPath;
      await askOrKeep({ analyst, path, trans }, { text });
    }
  };
  commands.addCommand(CommandIDs.explainError, {
    label: trans.__('Explain this error'),
    caption: trans.__('Ask the data analyst what the error means'),
    describedBy: { args: NO_ARGUMENTS },
    isVisible: hasError,
    isEnabled: hasError,
    execute: () => ask('explain')
  });
  commands.addCommand(CommandIDs.fixError, {
    label: trans.__('Fix this error'),
    caption: trans.__('Ask the data analyst for a corrected cell below'),
    icon: analystIcon,
    describedBy: { args: NO_ARGUMENTS },
    isVisible: hasError,
    isEnabled: hasError,
    execute: () => ask('fix')
  });
  followActiveCell(tracker, () => {
    commands.notifyCommandChanged(CommandIDs.explainError);
    commands.notifyCommandChanged(CommandIDs.fixError);
  });
}

/** Calls back when another cell is active, and when the active one's outputs change. */
function followActiveCell(
  tracker: INotebookTracker,
  onChange: () => void
): void {
  let followed: Cell | null = null;
  tracker.activeCellChanged.connect((_, cell) => {
    if (followed && !followed.isDisposed) {
      followed.model.contentChanged.disconnect(onChange);
    }
    followed = cell;
    cell?.model.contentChanged.connect(onChange);
    onChange();
  });
}
