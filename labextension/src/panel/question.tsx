import { useEffect, useRef } from 'react';
import type { KeyboardEvent, ReactElement, RefObject } from 'react';

import { usePanel } from './context';
import { MentionList, useMentions } from './mention';

/** The field for a question, with `@` completion of files and variables. */
export function QuestionField(props: {
  path: string;
  text: string;
  /** Grows when the field is to take the focus. */
  focusCount: number;
  onSubmit: () => void;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { focusCount, onSubmit, path, text } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  useFocus(field, focusCount);
  useFittingHeight(field, text);

  const mentions = useMentions(path, text, field);
  const { active, listId, shown } = mentions;
  const isOpen = shown.length > 0;

  const onKeyDown = (event: KeyboardEvent) => {
    // An input method uses Enter to end its own composition.
    if (event.nativeEvent.isComposing) {
      return;
    }
    if (mentions.onKey(event)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      onSubmit();
    }
  };

  return (
    <div className="jp-dm-QuestionField">
      <MentionList mentions={mentions} />
      <textarea
        ref={field}
        rows={2}
        data-testid="dm-composer"
        className="jp-dm-Question-input"
        aria-label={trans.__('Question about the data')}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={isOpen ? listId : undefined}
        aria-activedescendant={isOpen ? `${listId}-${active}` : undefined}
        placeholder={trans.__(
          'Ask about your data; @ names a file or variable'
        )}
        value={text}
        onChange={({ target }) => {
          analyst.drafts.change(path, { text: target.value });
          mentions.moved(target.selectionStart, true);
        }}
        onSelect={event =>
          mentions.moved(event.currentTarget.selectionStart, false)
        }
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

function useFocus(
  field: RefObject<HTMLTextAreaElement>,
  focusCount: number
): void {
  useEffect(() => {
    if (focusCount > 0) {
      field.current?.focus();
    }
  }, [field, focusCount]);
}

/** Lets the field grow with its text, up to what its style allows. */
function useFittingHeight(
  field: RefObject<HTMLTextAreaElement>,
  text: string
): void {
  useEffect(() => {
    const node = field.current;
    if (node) {
      node.style.height = 'auto';
      node.style.height = `${node.scrollHeight}px`;
    }
  }, [field, text]);
}
