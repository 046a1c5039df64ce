import { memo, useLayoutEffect, useRef } from 'react';
import type { ReactElement } from 'react';

/** Runs whose first piece of text was painted in this page. */
const painted = new Set<string>();

/**
 * The text of a turn while it comes. Only the new piece is added to the page; Markdown is for when
 * the turn is over.
 */
export const StreamingText = memo(function StreamingText(props: {
  runId: string;
  text: string;
}): ReactElement {
  const { runId, text } = props;
  const node = useRef<HTMLPreElement>(null);
  const shown = useRef('');
  useLayoutEffect(() => {
    const parent = node.current;
    if (!parent) {
      return;
    }
    if (text.startsWith(shown.current) && parent.firstChild) {
      const piece = text.slice(shown.current.length);
      (parent.firstChild as Text).appendData(piece);
    } else {
      parent.textContent = text;
    }
    shown.current = text;
    if (text && !painted.has(runId)) {
      painted.add(runId);
      requestAnimationFrame(() => {
        performance.mark('dm:first-token', { detail: { runId } });
      });
    }
  }, [runId, text]);
  return <pre ref={node} className="jp-dm-Streaming" />;
});
