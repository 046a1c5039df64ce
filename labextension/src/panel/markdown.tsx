import { MimeModel } from '@jupyterlab/rendermime';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { memo, useEffect, useRef } from 'react';
import type { ReactElement } from 'react';

import { fenced } from '../notebook/cells';
import { usePanel } from './context';
import { loadClicked } from '../model/remote';
import { shownCode } from '../model/invisible';

const MIME_TYPE = 'text/markdown';

/** Marks amounts of money outside of code: two of them would be taken for a formula. */
export function plainDollars(source: string): string {
  return source.replace(
    /(```[\s\S]*?```|`[^`\n]*`)|(?<![\\$])\$(?=\d)/g,
    (_, code?: string) => code ?? '\\$'
  );
}

/**
 * Text of the model as JupyterLab renders Markdown: sanitized, with formulas and code. Pictures
 * from elsewhere are loaded when they are clicked.
 */
export const Markdown = memo(function Markdown(props: {
  source: string;
  /** Whether it is shown to the letter, as code is that a person is to approve. */
  isVerbatim?: boolean;
  /** Called with what was rendered; one function for as long as the text is the same. */
  onRendered?: (node: HTMLElement) => void;
}): ReactElement {
  const { rendermime } = usePanel();
  const host = useRef<HTMLDivElement>(null);
  const { isVerbatim = false, onRendered, source } = props;
  useEffect(() => {
    const node = host.current;
    if (!node) {
      return;
    }
    const renderer = rendermime.createRenderer(MIME_TYPE);
    const model = new MimeModel({
      data: { [MIME_TYPE]: isVerbatim ? source : plainDollars(source) },
      trusted: false
    });
    renderer
      .renderModel(model)
      .catch(error => {
        console.warn('The text could not be rendered', error);
        renderer.node.textContent = source;
      })
      .finally(() => {
        if (!renderer.isDisposed) {
          onRendered?.(renderer.node);
        }
      });
    // React owns the parent, so the widget is not attached but told that it is.
    MessageLoop.sendMessage(renderer, Widget.Msg.BeforeAttach);
    node.appendChild(renderer.node);
    MessageLoop.sendMessage(renderer, Widget.Msg.AfterAttach);
    return () => {
      MessageLoop.sendMessage(renderer, Widget.Msg.BeforeDetach);
      renderer.node.remove();
      MessageLoop.sendMessage(renderer, Widget.Msg.AfterDetach);
      renderer.dispose();
    };
  }, [isVerbatim, onRendered, rendermime, source]);
  return (
    <div
      ref={host}
      className="jp-dm-Markdown"
      onClick={event => loadClicked(event.target)}
    />
  );
});

/** The text of a cell, coloured as the notebook colours it. */
export function Code(props: {
  source: string;
  language: string;
}): ReactElement {
  const { trans } = usePanel();
  const { language, source } = props;
  return (
    <div
      className="jp-dm-Code"
      role="group"
      aria-label={trans.__('Text of the cell')}
      // What scrolls must be reached with the keyboard.
      tabIndex={0}
    >
      <Markdown
        source={fenced(shownCode(source), language || 'python')}
        isVerbatim
      />
    </div>
  );
}
