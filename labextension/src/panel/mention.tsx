import { useEffect, useId, useMemo, useState } from 'react';
import type { KeyboardEvent, ReactElement, RefObject } from 'react';

import { candidatesFor, mentionAt } from '../notebook/completion';
import type { ICandidate } from '../notebook/completion';
import { usePanel } from './context';
import type { IVariable } from '../channel/rest';
import { folderFor } from '../model/sending';

/** The `@` completion of a field, as far as it is open. */
export interface IMentions {
  readonly listId: string;
  /** What is offered; empty when nothing is being completed. */
  readonly shown: readonly ICandidate[];
  readonly active: number;
  /** The text or the caret is another one. */
  moved(caret: number, isTyped: boolean): void;
  /** Puts what was chosen into the text, and with the question. */
  accept(candidate: ICandidate): void;
  /** Takes a key for the list; returns whether it did. */
  onKey(event: KeyboardEvent): boolean;
}

/** Follows what is typed after an `@`. */
export function useMentions(
  path: string,
  text: string,
  field: RefObject<HTMLTextAreaElement>
): IMentions {
  const { analyst } = usePanel();
  const listId = useId();
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [dismissed, setDismissed] = useState<number | null>(null);
  const mention = mentionAt(text, caret);
  const isMentioning = mention !== null;
  const isWanted = isMentioning && mention.start !== dismissed;
  const shown = useCandidates(path, isWanted ? mention.query : null);
  const active = Math.min(chosen, shown.length - 1);

  useEffect(() => {
    // Another mention may begin where one was dismissed and deleted.
    if (!isMentioning) {
      setDismissed(null);
    }
  }, [isMentioning]);

  const moved = (at: number, isTyped: boolean) => {
    setCaret(at);
    if (isTyped) {
      setChosen(0);
    }
  };
  const accept = (candidate: ICandidate) => {
    const before = `${text.slice(0, mention?.start ?? caret)}${candidate.label} `;
    analyst.drafts.change(path, { text: before + text.slice(caret) });
    if (candidate.kind === 'file') {
      analyst.drafts.addFile(path, candidate.value);
    } else {
      analyst.drafts.addVariable(path, candidate.value);
    }
    moved(before.length, true);
    field.current?.focus();
    requestAnimationFrame(() => {
      field.current?.setSelectionRange(before.length, before.length);
    });
  };
  const onKey = (event: KeyboardEvent): boolean => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (shown.length === 0) {
      return false;
    } else if (step) {
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
  return { listId, shown, active, moved, accept, onKey };
}

/** What can be named, above the field. */
export function MentionList(props: {
  mentions: IMentions;
}): ReactElement | null {
  const { trans } = usePanel();
  const { accept, active, listId, shown } = props.mentions;
  if (shown.length === 0) {
    return null;
  }
  return (
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
          title={candidate.value}
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
  );
}

const NONE: readonly never[] = [];
/** For several keys that are pressed one after another. */
const QUIET_MS = 80;

/** Returns what fits a query, which is `null` while nothing is being completed. */
function useCandidates(
  path: string,
  query: string | null
): readonly ICandidate[] {
  const { workspace } = usePanel();
  const near = folderFor(path, workspace);
  const files = useFiles(query, near);
  const variables = useVariables(path, query !== null);
  return useMemo(
    () =>
      query === null ? NONE : candidatesFor(files, variables, query, near),
    [files, near, query, variables]
  );
}

/** Searches files for each query; what was found for the one before stays until then. */
function useFiles(query: string | null, near: string): readonly string[] {
  const { analyst } = usePanel();
  const [found, setFound] = useState<readonly string[]>(NONE);
  useEffect(() => {
    if (query === null) {
      setFound(NONE);
      return;
    }
    let isCurrent = true;
    const take = (files: readonly string[]) => isCurrent && setFound(files);
    const timer = setTimeout(() => {
      analyst.rest.files(query, near).then(take, () => take(NONE));
    }, QUIET_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [analyst, near, query]);
  return found;
}

/** Lists the kernel's variables each time that a mention begins. */
function useVariables(path: string, isWanted: boolean): readonly IVariable[] {
  const { analyst } = usePanel();
  const [variables, setVariables] = useState<readonly IVariable[]>(NONE);
  useEffect(() => {
    if (!isWanted || !path) {
      setVariables(NONE);
      return;
    }
    let isCurrent = true;
    analyst.rest.variables(path).then(
      found => isCurrent && setVariables(found),
      // A kernel that does not answer has none to name.
      () => undefined
    );
    return () => {
      isCurrent = false;
    };
  }, [analyst, isWanted, path]);
  return variables;
}
