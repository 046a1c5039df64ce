/**
 * Long printed text: its beginning and its end are drawn, the rest on demand.
 *
 * JupyterLab draws the whole text of a stream again for each piece that is added to it, and a cell
 * that prints megabytes would stop the page for seconds. The notebook holds all of the text in any
 * case: only the drawing is cut.
 */
import {
  RenderedCommon,
  renderError,
  renderText
} from '@jupyterlab/rendermime';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';

/** Characters that are drawn of each end of a text that is cut. */
const KEPT = 20_000;
/** Before those of JupyterLab, whose ranks are 110 and 120. */
const RANK = 100;

const STDOUT = 'application/vnd.jupyter.stdout';
const STDERR = 'application/vnd.jupyter.stderr';

/** The parts of a long text. */
export interface ICut {
  readonly head: string;
  readonly tail: string;
  readonly hiddenCharacters: number;
}

/** Takes out the middle of a text, at line ends where there are any. */
export function cut(text: string, kept: number = KEPT): ICut {
  const headEnd = text.lastIndexOf('\n', kept) + 1 || kept;
  const from = text.length - kept;
  const lineEnd = text.indexOf('\n', from);
  const tailStart =
    lineEnd === -1 || lineEnd === text.length - 1 ? from : lineEnd + 1;
  return {
    head: text.slice(0, headEnd),
    tail: text.slice(tailStart),
    hiddenCharacters: tailStart - headEnd
  };
}

/** What a renderer of long text is told. */
export interface ILongTextOptions {
  /** Characters above which a text is cut; 0 for never. Asked at each drawing. */
  readonly limit: () => number;
  readonly trans: TranslationBundle;
}

/** Draws standard output or standard error; of a long one the two ends. */
class LongText extends RenderedCommon {
  constructor(
    made: IRenderMime.IRendererOptions,
    private readonly _options: ILongTextOptions
  ) {
    super(made);
    this.addClass('jp-RenderedText');
  }

  async render(model: IRenderMime.IMimeModel): Promise<void> {
    const text = String(model.data[this.mimeType]);
    const limit = this._options.limit();
    if (this._isWhole || limit === 0 || text.length <= limit) {
      await this._draw(this.node, text);
      return;
    }
    const { head, tail, hiddenCharacters } = cut(
      text,
      Math.min(KEPT, limit / 2)
    );
    if (this._head !== head) {
      this._head = head;
      this._headNode.textContent = '';
      await this._draw(this._headNode, head);
    }
    const tailNode = document.createElement('div');
    await this._draw(tailNode, tail);
    const button = this._button(text, hiddenCharacters);
    this.node.replaceChildren(this._headNode, button, tailNode);
  }

  private async _draw(host: HTMLElement, source: string): Promise<void> {
    const { linkHandler, resolver, sanitizer, translator } = this;
    const options = { host, source, sanitizer, translator };
    await (this.mimeType === STDERR
      ? renderError({ ...options, linkHandler, resolver })
      : renderText(options));
  }

  private _button(text: string, hiddenCharacters: number): HTMLElement {
    const button = document.createElement('button');
    button.className = 'jp-dm-LongText jp-mod-styled jp-mod-minimal';
    button.dataset.testid = 'dm-long-text';
    button.textContent = this._options.trans.__(
      '%1 characters are not drawn: show all',
      hiddenCharacters.toLocaleString()
    );
    button.onclick = () => {
      this._isWhole = true;
      this.node.textContent = '';
      void this._draw(this.node, text);
    };
    return button;
  }

  /** The beginning does not change while more is printed: it is drawn once. */
  private readonly _headNode = document.createElement('div');
  private _head: string | null = null;
  private _isWhole = false;
}

/** Makes JupyterLab draw long printed text in part. */
export function cutLongText(
  rendermime: IRenderMimeRegistry,
  options: ILongTextOptions
): void {
  rendermime.addFactory(
    {
      safe: true,
      mimeTypes: [STDOUT, STDERR],
      createRenderer: made => new LongText(made, options)
    },
    RANK
  );
}
