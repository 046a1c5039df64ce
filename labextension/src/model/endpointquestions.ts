import { useRef, useState } from 'react';
import type { RefObject } from 'react';

import { usePanel } from '../panel/context';
import type { Attempt, Work } from '../panel/modelsetup';
import type { IAbility } from '../channel/rest';

/** How a form reaches the server. */
export interface IAskProps {
  attempt: Attempt;
  work: Work;
  /** Called when the endpoint was set. */
  onSet?: () => void;
}

/** What the endpoint was asked, and what it said. */
export interface IQuestions {
  /** What the endpoint is being asked; empty for nothing. */
  readonly asking: '' | 'list' | 'test' | 'connect';
  readonly names: readonly string[];
  readonly rows: readonly IAbility[] | null;
  /** What came of it, for the eye and for a screen reader. */
  readonly said: string;
  change(name: string): void;
  list(): Promise<boolean>;
  test(): Promise<void>;
  connect(): Promise<void>;
}

/** Asks the endpoint; an answer about fields that have changed since is dropped. */
export function useQuestions(
  form: RefObject<HTMLFormElement>,
  props: IAskProps
): IQuestions {
  const { analyst, trans } = usePanel();
  const { choices, rest } = analyst;
  const { attempt, onSet, work } = props;
  const [asking, setAsking] = useState<IQuestions['asking']>('');
  const [names, setNames] = useState<readonly string[]>([]);
  const [rows, setRows] = useState<readonly IAbility[] | null>(null);
  const [said, setSaid] = useState('');
  const version = useRef(0);
  const text = (name: string) => fieldOf(form, name).value;

  const change = (name: string) => {
    version.current += 1;
    setRows(null);
    setSaid('');
    if (name === 'url') {
      setNames([]);
    }
  };
  /** Returns `null` where it failed, or no longer matters. */
  async function ask<T>(
    what: IQuestions['asking'],
    question: () => Promise<T>
  ): Promise<T | null> {
    const asked = version.current;
    setAsking(what);
    setRows(null);
    setSaid(trans.__('Asking the endpoint…'));
    const answer = await question();
    setAsking('');
    if (asked !== version.current) {
      return null;
    }
    setSaid('');
    return answer;
  }
  const list = async () => {
    if (asking || !fieldOf(form, 'url').reportValidity()) {
      return false;
    }
    const found = await ask('list', () =>
      attempt(rest.listModels(text('url'), text('key')))
    );
    if (found) {
      setNames(found);
      setSaid(
        trans._n(
          '%1 model. Choose it in the field, or type a name.',
          '%1 models. Choose one in the field, or type a name.',
          found.length
        )
      );
    }
    return found !== null;
  };
  const test = async () => {
    if (asking || !form.current?.reportValidity()) {
      return;
    }
    const found = await ask('test', () =>
      attempt(rest.testEndpoint(text('url'), text('model'), text('key')))
    );
    if (found) {
      setRows(found);
      setSaid(trans.__('The endpoint answers. This is what it can do:'));
    }
  };
  const connect = async () => {
    if (asking) {
      return;
    }
    const model = text('model');
    const isSet = await ask('connect', async () => {
      const done = await work(
        rest.setEndpoint(text('url'), model, text('key'))
      );
      if (done) {
        // A local model that was chosen before is not the one that was set up.
        choices.model = '';
        onSet?.();
      }
      return done;
    });
    if (isSet && form.current) {
      fieldOf(form, 'key').value = '';
      setSaid(trans.__('Connected. %1 answers from now on.', model));
    }
  };
  return { asking, names, rows, said, change, list, test, connect };
}

/** Returns an input of the form. */
export function fieldOf(
  form: RefObject<HTMLFormElement>,
  name: string
): HTMLInputElement {
  return form.current!.elements.namedItem(name) as HTMLInputElement;
}
