import { useEffect, useId, useMemo, useRef, useState } from 'react';
import type { KeyboardEvent, ReactElement, RefObject } from 'react';

import { listCandidates, matching, mentionAt } from './completion';
import type { ICandidate } from './completion';
import { usePanel } from './context';

/** The field for a question, with `@` completion of files and variables. */
export function QuestionField(props: {
  path: string;
  text: string;
  isDisabled: boolean;
  /** Grows when the field is to take the focus. */
  focusCount: number;
  onSubmit: () => void;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { focusCount, isDisabled, onSubmit, path, text } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const listId = useId();
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [dismissed, setDismissed] = useState<number | null>(null);
  const mention = mentionAt(text, caret);
  const isWanted = mention !== null && mention.start !== dismissed;
  const candidates = useCandidates(path, isWanted);
  const shown = useMemo(
    () => (isWanted ? matching(candidates, mention.query) : []),
    // The mention is a new object for each key; what it says decides.
    [candidates, isWanted, mention?.query]
  );
  const isOpen = shown.length > 0;
  const active = Math.min(chosen, shown.length - 1);

  useEffect(() => {
    if (focusCount > 0) {
      field.current?.focus();
    }
  }, [focusCount]);
  useFittingHeight(field, text);

  const change = (value: string, at: number) => {
    analyst.drafts.change(path, { text: value });
    setCaret(at);
    setChosen(0);
  };
  const accept = (candidate: ICandidate) => {
    if (!mention) {
      return;
    }
    const before = `${text.slice(0, mention.start)}${candidate.label} `;
    change(before + text.slice(caret), before.length);
    if (candidate.kind === 'file') {
      analyst.drafts.addFile(path, candidate.value);
    } else {
      analyst.drafts.addVariable(path, candidate.value);
    }
    field.current?.focus();
    requestAnimationFrame(() => {
      field.current?.setSelectionRange(before.length, before.length);
    });
  };
  const onListKey = (event: KeyboardEvent): boolean => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      setChosen((active + step + shown.length) % shown.length);
    } else if (event.key === 'Enter' || event.key === 'Tab') {
      accept(shown[active]);
    } else if (event.key === 'Escape') {
      setDismissed(mention?.start ?? null);
    } else {
      return false;
    }
    return true;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // An input method uses Enter to end its own composition.
    if (event.nativeEvent.isComposing) {
      return;
    }
    if (isOpen && onListKey(event)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      onSubmit();
    }
  };

  return (
    <div className="jp-dm-QuestionField">
      {isOpen && (
        <ul
          id={listId}
          role="listbox"
          className="jp-dm-Completion"
          data-testid="dm-completion"
          aria-label={trans.__('Files and variables')}
        >
          {shown.map((candidate, index) => (
            <li
              key={`${candidate.kind} ${candidate.value}`}
              id={`${listId}-${index}`}
              role="option"
              aria-selected={index === active}
              className={index === active ? 'jp-mod-active' : undefined}
              // The field must keep the focus.
              onMouseDown={event => event.preventDefault()}
              onClick={() => accept(candidate)}
            >
              <span>{candidate.label}</span> <small>{candidate.detail}</small>
            </li>
          ))}
        </ul>
      )}
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
        disabled={isDisabled}
        value={text}
        onChange={event =>
          change(event.target.value, event.target.selectionStart)
        }
        onSelect={event => setCaret(event.currentTarget.selectionStart)}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

/** Lists candidates each time that a mention begins. */
function useCandidates(path: string, isWanted: boolean): readonly ICandidate[] {
  const { analyst, trans } = usePanel();
  const [candidates, setCandidates] = useState<readonly ICandidate[]>([]);
  useEffect(() => {
    if (!isWanted) {
      return;
    }
    let isCurrent = true;
    void listCandidates(path, analyst.contents, analyst.rest, trans).then(
      found => {
        if (isCurrent) {
          setCandidates(found);
        }
      }
    );
    return () => {
      isCurrent = false;
    };
  }, [analyst, isWanted, path, trans]);
  return candidates;
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
