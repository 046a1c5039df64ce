import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { SplitPanel } from '@lumino/widgets';
import type { Widget } from '@lumino/widgets';
import type { ReactElement } from 'react';

import { PanelContext } from './context';
import type { IPanelContext } from './context';
import { FileDropTarget } from '../notebook/dropping';
import { analystIcon } from './icon';
import type { IRunSummary } from '../channel/rest';
import { folderFor } from '../model/sending';
import type { IAnalyst } from '../model/tokens';
import { PanelView } from './view';
import type { IViewState } from './view';
import type { Workspace } from '../model/workspace';

export const PANEL_ID = 'dm-jupyter-panel';

/** Wide enough for a line of code, where the person has chosen no width yet. */
const WIDTH_PX = 384;
/** Of the window, so that the notebook stays the larger. */
const MOST_SHARE = 0.4;

/** The side panel. */
export class AnalystPanel extends ReactWidget {
  constructor(options: {
    analyst: IAnalyst;
    workspace: Workspace;
    rendermime: IRenderMimeRegistry;
    trans: TranslationBundle;
    /** Whether JupyterLab has put back a width that the person gave to this side. */
    hasOwnWidth: Promise<boolean>;
  }) {
    super();
    this._context = options;
    this._hasOwnWidth = options.hasOwnWidth;
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
  addFiles(
    paths: readonly string[],
    // Without a notebook one is made beside them when the question is sent.
    target = this._context.analyst.currentPath
  ): void {
    const { analyst } = this._context;
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
      void this._makeRoom();
    }
  }

  protected override onBeforeDetach(msg: Message): void {
    this._dropTarget.unlisten();
    super.onBeforeDetach(msg);
  }

  /** Takes more of the window at the first opening; later the width is the person's. */
  private async _makeRoom(): Promise<void> {
    if (await this._hasOwnWidth) {
      return;
    }
    // The window is laid out anew for the panel first.
    requestAnimationFrame(() => widen(this));
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
    // The person may look at another notebook before the last file is there.
    const target = analyst.currentPath;
    const folder = folderFor(target, workspace);
    const paths: string[] = [];
    for (const file of files) {
      try {
        paths.push(await workspace.upload(file, folder));
      } catch (error) {
        const reason = (error as Error).message ?? String(error);
        analyst.model.notify(
          target,
          trans.__('%1 was not uploaded: %2', file.name, reason)
        );
      }
    }
    this.addFiles(paths, target);
  }

  private _setState(part: Partial<IViewState>): void {
    this._state = { ...this._state, ...part };
    this.update();
  }

  private readonly _context: IPanelContext;
  private readonly _dropTarget: FileDropTarget;
  private readonly _hasOwnWidth: Promise<boolean>;
  private _state: IViewState = {
    page: 'runs',
    shownRun: null,
    focusCount: 0,
    wasShown: false
  };
}

/** Gives a panel at the window's edge its width, at the cost of the widest beside it. */
function widen(panel: Widget): void {
  let child = panel;
  let split = panel.parent;
  while (split && !(split instanceof SplitPanel)) {
    child = split;
    split = split.parent;
  }
  if (!split || split.orientation !== 'horizontal') {
    return;
  }
  const place = split.widgets.indexOf(child);
  const windowPx = split.node.clientWidth;
  const wanted = Math.min(WIDTH_PX / windowPx, MOST_SHARE);
  const sizes = split.relativeSizes();
  const missing = wanted - sizes[place];
  const widest = sizes.indexOf(Math.max(...sizes));
  // Between two others it is not at the edge: the person has put it among the documents.
  const isAtEdge = place === 0 || place === sizes.length - 1;
  if (missing > 0 && widest !== place && isAtEdge) {
    sizes[place] += missing;
    sizes[widest] -= missing;
    split.setRelativeSizes(sizes);
  }
}
