import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import {
  IDefaultFileBrowser,
  IFileBrowserFactory
} from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

// The panel, its channel and its commands are there from the start.
/* eslint-disable jupyter/prefer-lazy-imports */
import { Analyst } from './model/analyst';
import { linkAnswers } from './panel/answernumbers';
import { CommandIDs, addCommands } from './panel/commands';
import { followConsoles } from './kernel/consoles';
import { chooseKernel } from './kernel/kernelchoice';
import { KernelStatus } from './kernel/kernelstatus';
import { agreeToLinks } from './panel/linkchoice';
import { kernelOf } from './notebook/cells';
import { cutLongText } from './notebook/longtext';
import { AnalystPanel, PANEL_ID } from './panel/panel';
import { loadFromNotebooks, quiet, stopLookingUpHosts } from './model/remote';
import { IAnalyst } from './model/tokens';
import { Workspace } from './model/workspace';
/* eslint-enable jupyter/prefer-lazy-imports */

const PLUGIN_ID = 'dm-jupyter:plugin';

const plugin: JupyterFrontEndPlugin<IAnalyst> = {
  id: PLUGIN_ID,
  description: 'An AI data analyst beside the notebook.',
  autoStart: true,
  provides: IAnalyst,
  requires: [INotebookTracker, IRenderMimeRegistry, IDocumentManager],
  optional: [
    ITranslator,
    ISettingRegistry,
    ICommandPalette,
    IStatusBar,
    ILayoutRestorer,
    IFileBrowserFactory,
    IDefaultFileBrowser,
    ILauncher,
    ILabShell
  ],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    rendermime: IRenderMimeRegistry,
    documents: IDocumentManager,
    translator: ITranslator | null,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
    restorer: ILayoutRestorer | null,
    browsers: IFileBrowserFactory | null,
    browser: IDefaultFileBrowser | null,
    launcher: ILauncher | null,
    labShell: ILabShell | null
  ): IAnalyst => {
    const trans = (translator ?? nullTranslator).load('dm_jupyter');
    const analyst = new Analyst(tracker, app.serviceManager, trans);
    const workspace = new Workspace(documents, browser);
    const panel = new AnalystPanel({
      analyst,
      workspace,
      rendermime: quiet(rendermime, trans),
      trans,
      hasOwnWidth: hasOwnWidth(labShell)
    });

    cutLongText(rendermime, {
      limit: () => analyst.choices.longText,
      trans
    });
    linkAnswers(tracker, trans);
    loadFromNotebooks(trans);
    stopLookingUpHosts();
    app.shell.add(panel, 'right', { rank: 600, type: 'Data analyst' });
    restorer?.add(panel, PANEL_ID);
    addCommands({
      app,
      analyst,
      workspace,
      panel,
      tracker,
      browsers,
      palette,
      trans
    });
    launcher?.add({
      command: CommandIDs.ask,
      args: { isLauncher: true },
      category: trans.__('Data analyst'),
      // Below the notebooks.
      categoryRank: 1
    });
    statusBar?.registerStatusItem('dm-jupyter:kernel', {
      item: new KernelStatus(analyst, trans),
      align: 'left',
      rank: 3
    });
    analyst.kernelRefused.connect((_, refusal) => {
      void chooseKernel(refusal, analyst, workspace, trans);
    });
    analyst.linkRefused.connect((_, refusal) => {
      void agreeToLinks(refusal, analyst, trans);
    });
    NotebookActions.executionScheduled.connect((_, { notebook }) =>
      analyst.ranOwn(({ content }) => content === notebook)
    );
    if (labShell) {
      followConsoles(labShell, kernelId =>
        analyst.ranOwn(panel => kernelOf(panel) === kernelId)
      );
    }
    void followSettings(settings, analyst, app);
    analyst.start();
    return analyst;
  }
};

/** Whether the layout that was put back has a width for the right side, where it was open. */
async function hasOwnWidth(shell: ILabShell | null): Promise<boolean> {
  const layout = await shell?.restored;
  return !layout?.fresh && (layout?.relativeSizes?.[2] ?? 0) > 0;
}

async function followSettings(
  registry: ISettingRegistry | null,
  analyst: Analyst,
  app: JupyterFrontEnd
): Promise<void> {
  if (!registry) {
    return;
  }
  try {
    analyst.choices.follow(await registry.load(PLUGIN_ID));
  } catch (error) {
    console.warn('The settings of the data analyst could not be read', error);
  }
  await app.restored;
  if (analyst.choices.opensPanel) {
    app.shell.activateById(PANEL_ID);
  }
}

export { IAnalyst } from './model/tokens';
export default plugin;
