import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';
import {
  createContext,
  useCallback,
  useContext,
  useLayoutEffect,
  useRef,
  useSyncExternalStore
} from 'react';
import type { RefObject } from 'react';

import { nextFrame } from '../notebook/frame';
import type { Schedule } from '../notebook/frame';
import type { IAnalyst } from '../model/tokens';
import type { Workspace } from '../model/workspace';

/** What every part of the panel needs. */
export interface IPanelContext {
  readonly analyst: IAnalyst;
  readonly workspace: Workspace;
  readonly rendermime: IRenderMimeRegistry;
  readonly trans: TranslationBundle;
}

export const PanelContext = createContext<IPanelContext | null>(null);

/** Returns what the panel was made with. */
export function usePanel(): IPanelContext {
  const context = useContext(PanelContext);
  if (!context) {
    throw new Error('used outside of the panel');
  }
  return context;
}

/** Calls back when what holds the focus is taken away: else it falls to the page's body. */
export function useFocusLost(
  from: RefObject<HTMLElement>,
  onLost: () => void
): void {
  const last = useRef(onLost);
  last.current = onLost;
  useLayoutEffect(() => {
    const node = from.current;
    return () => {
      if (node?.contains(document.activeElement)) {
        last.current();
      }
    };
  }, [from]);
}

/**
 * Returns what `read` gives, and again after the signal: at once, as a field needs that shows what
 * is typed into it.
 *
 * @param read Returns the same value as long as nothing changed.
 */
export function useSignal<T>(
  signal: ISignal<unknown, unknown>,
  read: () => T
): T {
  return useSubscription(signal, read, immediately);
}

/** As `useSignal`, but once a frame at most: a run may send hundreds of messages a second. */
export function useFramedSignal<T>(
  signal: ISignal<unknown, unknown>,
  read: () => T
): T {
  return useSubscription(signal, read, nextFrame);
}

const immediately: Schedule = callback => {
  callback();
  return () => undefined;
};

function useSubscription<T>(
  signal: ISignal<unknown, unknown>,
  read: () => T,
  schedule: Schedule
): T {
  const subscribe = useCallback(
    (onChange: () => void) => {
      let isScheduled = false;
      let cancel = () => undefined as void;
      const slot = () => {
        if (!isScheduled) {
          isScheduled = true;
          cancel = schedule(() => {
            isScheduled = false;
            onChange();
          });
        }
      };
      signal.connect(slot);
      return () => {
        signal.disconnect(slot);
        cancel();
      };
    },
    [signal, schedule]
  );
  return useSyncExternalStore(subscribe, read);
}
