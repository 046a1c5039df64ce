/**
 * What the analyst does in the application around the notebooks: opens, creates, uploads.
 */
import { PathExt } from '@jupyterlab/coreutils';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import { FileBrowserModel } from '@jupyterlab/filebrowser';
import type { FileBrowser } from '@jupyterlab/filebrowser';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { kernelSettled } from '../notebook/kernelstart';

/** Name of the kernelspec whose kernels are restricted. */
export const RESTRICTED_KERNEL = 'dm-sandbox';

/** Opens and makes documents for the analyst. */
export class Workspace {
  constructor(
    private readonly _documents: IDocumentManager,
    private readonly _browser: FileBrowser | null = null
  ) {
    _browser?.model.pathChanged.connect(() => this._folderChanged.emit());
  }

  /** The folder that the file browser shows; an empty text for the server's root. */
  get folder(): string {
    const path = this._browser?.model.path ?? '';
    return this._documents.services.contents.localPath(path);
  }

  get folderChanged(): ISignal<this, void> {
    return this._folderChanged;
  }

  /** Whether the server offers restricted kernels. */
  get hasRestrictedKernel(): boolean {
    const specs = this._documents.services.kernelspecs.specs?.kernelspecs;
    return specs?.[RESTRICTED_KERNEL] !== undefined;
  }

  /**
   * Opens a notebook. Returns `null` where the application shows it in a page of its own, as
   * Notebook 7 does.
   */
  async openNotebook(path: string): Promise<NotebookPanel | null> {
    return this._ready(this._documents.openOrReveal(path));
  }

  /** Opens a file; as text, where its usual viewer might do more than show it. */
  async openFile(path: string, viewer: 'own' | 'text'): Promise<void> {
    const factory = viewer === 'text' ? 'Editor' : undefined;
    await this._documents.openOrReveal(path, factory)?.context.ready;
  }

  /** Makes a notebook with a restricted kernel in the folder, and opens it. */
  async newNotebook(folder: string): Promise<NotebookPanel | null> {
    const { path } = await this._documents.newUntitled({
      path: folder,
      type: 'notebook'
    });
    const kernel = this.hasRestrictedKernel
      ? { name: RESTRICTED_KERNEL }
      : undefined;
    return this._ready(
      this._documents.openOrReveal(path, undefined, kernel ?? {})
    );
  }

  /** Starts a restricted kernel in a notebook's folder, which belongs to no notebook yet. */
  async startRestrictedKernel(path: string): Promise<Kernel.IKernelConnection> {
    const options = { name: RESTRICTED_KERNEL, path };
    return this._documents.services.kernels.startNew(options);
  }

  /** Uploads a file of the person's computer; returns its path. */
  async upload(file: File, folder: string): Promise<string> {
    // The file browser's model cuts large files to pieces and asks before it overwrites one.
    // eslint-disable-next-line jupyter/require-disposable-ownership
    const model = new FileBrowserModel({ manager: this._documents });
    try {
      await model.cd(`/${folder}`);
      return (await model.upload(file)).path;
    } finally {
      model.dispose();
    }
  }

  private readonly _folderChanged = new Signal<this, void>(this);

  private async _ready(widget: unknown): Promise<NotebookPanel | null> {
    if (!(widget instanceof NotebookPanel)) {
      return null;
    }
    await kernelSettled(widget);
    return widget;
  }
}

/** Returns the folder that a path lies in; an empty text for the server's root. */
export function folderOf(path: string): string {
  return PathExt.dirname(path);
}
