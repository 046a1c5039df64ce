import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { ReactElement } from 'react';

import { PanelContext } from './context';
import type { IPanelContext } from './context';
import { FileDropTarget } from './dropping';
import { analystIcon } from './icon';
import type { IRunSummary } from './rest';
import { folderFor } from './sending';
import type { IAnalyst } from './tokens';
import { PanelView } from './view';
import type { IViewState } from './view';
import type { Workspace } from './workspace';

export const PANEL_ID = 'dm-jupyter-panel';

/** The side panel. */
export class AnalystPanel extends ReactWidget {
  constructor(options: {
    analyst: IAnalyst;
    workspace: Workspace;
    rendermime: IRenderMimeRegistry;
    trans: TranslationBundle;
  }) {
    super();
    this._context = options;
    const { trans } = options;
    this.id = PANEL_ID;
    this.addClass('jp-dm-Panel');
    this.title.icon = analystIcon;
    this.title.caption = trans.__('Data analyst');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Data analyst'));
    this._dropTarget = new FileDropTarget(this.node, {
      onPaths: paths => this.addFiles(paths),
      onFiles: files => void this._upload(files)
    });
  }

  /** Puts the caret into the question field. */
  focusComposer(): void {
    const focusCount = this._state.focusCount + 1;
    this._setState({ page: 'runs', focusCount });
  }

  showHistory(): void {
    this._setState({ page: 'history' });
  }

  /** Adds files to the next question. */
  addFiles(paths: readonly string[]): void {
    const { analyst } = this._context;
    // Without a notebook one is made beside them when the question is sent.
    const target = analyst.currentPath;
    paths.forEach(path =>
      analyst.drafts.addFile(target, analyst.contents.localPath(path))
    );
  }

  protected override render(): ReactElement {
    return (
      <PanelContext.Provider value={this._context}>
        <PanelView
          state={this._state}
          onPage={page => this._setState({ page })}
          onShowRun={run => void this._showRun(run)}
        />
      </PanelContext.Provider>
    );
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._dropTarget.listen();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    if (!this._state.wasShown) {
      this._setState({ wasShown: true });
    }
  }

  protected override onBeforeDetach(msg: Message): void {
    this._dropTarget.unlisten();
    super.onBeforeDetach(msg);
  }

  private async _showRun(run: IRunSummary): Promise<void> {
    const { analyst, workspace } = this._context;
    if (run.notebook_path !== analyst.currentPath) {
      await workspace.openNotebook(run.notebook_path);
    }
    this._setState({ page: 'runs', shownRun: run.run_id });
  }

  private async _upload(files: readonly File[]): Promise<void> {
    const { analyst, trans, workspace } = this._context;
    const folder = folderFor(analyst.currentPath, workspace);
    const paths: string[] = [];
    for (const file of files) {
      try {
        paths.push(await workspace.upload(file, folder));
      } catch (error) {
        const reason = (error as Error).message ?? String(error);
        analyst.model.notify(
          analyst.currentPath,
          trans.__('%1 was not uploaded: %2', file.name, reason)
        );
      }
    }
    this.addFiles(paths);
  }

  private _setState(part: Partial<IViewState>): void {
    this._state = { ...this._state, ...part };
    this.update();
  }

  private readonly _context: IPanelContext;
  private readonly _dropTarget: FileDropTarget;
  private _state: IViewState = {
    page: 'runs',
    shownRun: null,
    focusCount: 0,
    wasShown: false
  };
}
