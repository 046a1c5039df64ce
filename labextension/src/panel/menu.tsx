import { ellipsesIcon } from '@jupyterlab/ui-components';
import { useEffect, useId, useRef, useState } from 'react';
import type { KeyboardEvent, ReactElement, RefObject } from 'react';

/** One thing that a menu offers. */
export interface IMenuItem {
  readonly label: string;
  readonly isDisabled?: boolean;
  readonly act: () => void;
}

/** A button that opens a menu above or below it, as ARIA's pattern of a menu button asks. */
export function MenuButton(props: {
  label: string;
  items: readonly IMenuItem[];
  /** What the menu says besides, in a line. */
  note: string;
}): ReactElement {
  const { items, label, note } = props;
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const menuId = useId();
  const close = (refocus: boolean) => {
    setOpen(false);
    if (refocus) {
      button.current?.focus();
    }
  };
  return (
    <div
      className="jp-dm-MenuPlace"
      onBlur={event => {
        if (!event.currentTarget.contains(event.relatedTarget)) {
          close(false);
        }
      }}
    >
      <button
        ref={button}
        type="button"
        className="jp-dm-IconButton"
        data-testid="dm-more"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? menuId : undefined}
        onClick={() => setOpen(!isOpen)}
        onKeyDown={event => {
          if (event.key === 'ArrowDown') {
            event.preventDefault();
            setOpen(true);
          }
        }}
      >
        <ellipsesIcon.react tag="span" />
      </button>
      {isOpen && (
        <Menu
          id={menuId}
          label={label}
          items={items}
          note={note}
          onClose={close}
        />
      )}
    </div>
  );
}

function Menu(props: {
  id: string;
  label: string;
  items: readonly IMenuItem[];
  note: string;
  onClose: (refocus: boolean) => void;
}): ReactElement {
  const { id, items, label, note, onClose } = props;
  const list = useRef<HTMLUListElement>(null);
  const noteId = useId();
  useEffect(() => {
    entries(list)[0]?.focus();
    list.current?.parentElement?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <div className="jp-dm-Menu">
      <ul
        ref={list}
        id={id}
        role="menu"
        aria-label={label}
        aria-describedby={note ? noteId : undefined}
        onKeyDown={event => {
          if (event.key === 'Escape') {
            event.stopPropagation();
            onClose(true);
          } else if (event.key === 'Tab') {
            // From the button on, as if the menu had not been there.
            onClose(true);
          } else {
            move(event, entries(list));
          }
        }}
      >
        {items.map(item => (
          <li key={item.label} role="none">
            <button
              type="button"
              role="menuitem"
              tabIndex={-1}
              aria-disabled={item.isDisabled ?? false}
              onClick={() => {
                if (!item.isDisabled) {
                  onClose(true);
                  item.act();
                }
              }}
            >
              {item.label}
            </button>
          </li>
        ))}
      </ul>
      {note && (
        <p id={noteId} className="jp-dm-Menu-note">
          {note}
        </p>
      )}
    </div>
  );
}

function entries(list: RefObject<HTMLElement>): HTMLElement[] {
  return Array.from(
    list.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? []
  );
}

/** Goes through the entries with the arrow keys, Home and End. */
function move(event: KeyboardEvent, found: readonly HTMLElement[]): void {
  const now = found.indexOf(event.target as HTMLElement);
  const to: { [key: string]: number } = {
    ArrowDown: (now + 1) % found.length,
    ArrowUp: (now - 1 + found.length) % found.length,
    Home: 0,
    End: found.length - 1
  };
  const index = to[event.key];
  if (index !== undefined) {
    event.preventDefault();
    found[index]?.focus();
  }
}
