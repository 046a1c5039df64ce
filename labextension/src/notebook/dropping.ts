/**
 * Files that are dropped on the panel: from the file browser, and from the person's desktop.
 */
import type { Drag } from '@lumino/dragdrop';

/** What the file browser's drags carry: a list of paths. */
const CONTENTS_MIME = 'application/x-jupyter-icontents';
const DROP_CLASS = 'jp-mod-dropTarget';
const EVENTS = [
  'lm-dragenter',
  'lm-dragleave',
  'lm-dragover',
  'lm-drop',
  'dragover',
  'dragleave',
  'drop'
] as const;

export interface IDropHandlers {
  /** Paths that the file browser knows. */
  onPaths(paths: readonly string[]): void;
  onFiles(files: readonly File[]): void;
}

/** Makes a node take files. */
export class FileDropTarget {
  constructor(
    private readonly _node: HTMLElement,
    private readonly _handlers: IDropHandlers
  ) {}

  listen(): void {
    EVENTS.forEach(name => this._node.addEventListener(name, this));
  }

  unlisten(): void {
    EVENTS.forEach(name => this._node.removeEventListener(name, this));
  }

  handleEvent(event: Event): void {
    if (event.type.startsWith('lm-')) {
      this._onBrowserDrag(event as Drag.Event);
    } else {
      this._onDesktopDrag(event as DragEvent);
    }
  }

  private _onBrowserDrag(event: Drag.Event): void {
    if (!event.mimeData.hasData(CONTENTS_MIME)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    this._highlight(event.type !== 'lm-dragleave' && event.type !== 'lm-drop');
    if (event.type === 'lm-dragover') {
      event.dropAction = event.proposedAction;
    } else if (event.type === 'lm-drop') {
      event.dropAction = event.proposedAction;
      this._handlers.onPaths(event.mimeData.getData(CONTENTS_MIME));
    }
  }

  private _onDesktopDrag(event: DragEvent): void {
    if (!event.dataTransfer?.types.includes('Files')) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    this._highlight(event.type === 'dragover');
    if (event.type === 'drop') {
      this._handlers.onFiles(Array.from(event.dataTransfer.files));
    }
  }

  private _highlight(isOver: boolean): void {
    this._node.classList.toggle(DROP_CLASS, isOver);
  }
}
