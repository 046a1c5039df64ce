import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon, editIcon } from '@jupyterlab/ui-components';
import { useCallback, useEffect, useRef, useState } from 'react';
import type { KeyboardEvent, ReactElement } from 'react';

import { usePanel, useSignal } from './context';
import type {
  HoldReason,
  IQueuePicture,
  IWaitingQuestion
} from '../model/questionqueue';

/** The questions that wait for the run above, each to change or to take back. */
export function WaitingList(props: {
  path: string;
  isConnected: boolean;
  /** The field below takes the focus, which was on something that goes. */
  onLeft: () => void;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { isConnected, onLeft, path } = props;
  const { queue } = analyst;
  const picture = useSignal(
    queue.changed,
    useCallback(() => queue.get(path), [queue, path])
  );
  const { edited, held, waiting } = picture;
  const said = useNews(path, picture, trans);
  return (
    <>
      <div className="jp-dm-Unseen" role="status" aria-live="polite">
        {said}
      </div>
      {waiting.length > 0 && (
        <section
          className="jp-dm-Waiting"
          data-testid="dm-waiting"
          aria-label={trans.__('Questions that wait')}
        >
          <div className="jp-dm-Waiting-state">
            <p>{held ? heldWords(held, trans) : waitingWords(trans)}</p>
            {held && (
              <button
                type="button"
                className="jp-dm-Button jp-mod-accept"
                data-testid="dm-waiting-send"
                aria-label={trans.__('Send the questions that wait')}
                disabled={!isConnected || !path}
                onClick={() => {
                  queue.release(path);
                  onLeft();
                }}
              >
                {trans.__('Send')}
              </button>
            )}
          </div>
          <ol aria-label={trans.__('In this order')}>
            {waiting.map(one => (
              <li
                key={one.id}
                className="jp-dm-Bubble"
                data-testid="dm-waiting-question"
              >
                {one.id === edited ? (
                  <Editor path={path} waiting={one} onLeft={onLeft} />
                ) : (
                  <Question path={path} waiting={one} onLeft={onLeft} />
                )}
              </li>
            ))}
          </ol>
        </section>
      )}
    </>
  );
}

interface IEntryProps {
  path: string;
  waiting: IWaitingQuestion;
  onLeft: () => void;
}

function Question(props: IEntryProps): ReactElement {
  const { analyst, trans } = usePanel();
  const { onLeft, path, waiting } = props;
  const { drafts, queue } = analyst;
  const { files = [], text, variables = [] } = waiting.question;
  const about = files
    .map(file => PathExt.basename(file))
    .filter(name => !text.includes(name))
    .join(', ');
  const edit = () => {
    const { edited } = queue.get(path);
    if (edited !== null) {
      // As if the person had clicked “Done” there.
      const words = drafts.kept(edited)?.trim() ?? null;
      drafts.keep(edited, null);
      queue.endEdit(path, words);
    }
    queue.edit(path, waiting.id);
  };
  const takeBack = () => {
    const question = queue.takeBack(path, waiting.id);
    if (question && drafts.get(path).text) {
      // The field is taken: what was written can be copied from here.
      analyst.model.notify(path, trans.__('“%1” was taken back.', text));
    } else if (question) {
      drafts.change(path, { text, files, variables });
    }
    onLeft();
  };
  return (
    <>
      <div className="jp-dm-Waiting-text">
        <p title={text}>{text}</p>
        {about && <p className="jp-dm-Files">{about}</p>}
      </div>
      <button
        type="button"
        className="jp-dm-IconButton"
        data-testid="dm-waiting-edit"
        aria-label={trans.__('Change “%1”', text)}
        title={trans.__('Change the question')}
        onClick={edit}
      >
        <editIcon.react tag="span" />
      </button>
      <button
        type="button"
        className="jp-dm-IconButton"
        data-testid="dm-waiting-take-back"
        aria-label={trans.__('Take back “%1”', text)}
        title={trans.__('Take back the question')}
        onClick={takeBack}
      >
        <closeIcon.react tag="span" />
      </button>
    </>
  );
}

function Editor(props: IEntryProps): ReactElement {
  const { analyst, trans } = usePanel();
  const { onLeft, path, waiting } = props;
  const { drafts } = analyst;
  const [text, setText] = useState(
    () => drafts.kept(waiting.id) ?? waiting.question.text
  );
  const change = (words: string) => {
    drafts.keep(waiting.id, words);
    setText(words);
  };
  const end = (words: string | null) => {
    drafts.keep(waiting.id, null);
    analyst.queue.endEdit(path, words);
    onLeft();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) {
      return;
    }
    if (event.key === 'Escape') {
      end(null);
    } else if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      end(text.trim());
    }
  };
  return (
    <>
      <textarea
        autoFocus
        className="jp-dm-Waiting-input"
        data-testid="dm-waiting-input"
        aria-label={trans.__('Text of the question')}
        rows={2}
        value={text}
        onChange={event => change(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <button
        type="button"
        className="jp-dm-Button"
        onClick={() => end(text.trim())}
      >
        {trans.__('Done')}
      </button>
    </>
  );
}

/** What a screen reader is told when the queue is another one. */
function useNews(
  path: string,
  picture: IQueuePicture,
  trans: TranslationBundle
): string {
  const [said, setSaid] = useState('');
  const before = useRef({ path, picture });
  useEffect(() => {
    const { path: oldPath, picture: old } = before.current;
    before.current = { path, picture };
    if (path !== oldPath) {
      return;
    }
    const { held, waiting } = picture;
    if (held && held !== old.held) {
      setSaid(heldWords(held, trans));
    } else if (waiting.length > old.waiting.length) {
      setSaid(
        trans._n(
          'Your question waits for the run.',
          '%1 questions wait for the run.',
          waiting.length
        )
      );
    } else if (waiting.length < old.waiting.length) {
      setSaid(
        trans._n('%1 question waits.', '%1 questions wait.', waiting.length)
      );
    }
  }, [path, picture, trans]);
  return said;
}

function waitingWords(trans: TranslationBundle): string {
  return trans.__('Waits for the answer above:');
}

function heldWords(held: HoldReason, trans: TranslationBundle): string {
  const words: { readonly [reason in HoldReason]: string } = {
    stopped: trans.__('Not sent, because the run was stopped:'),
    unanswered: trans.__('Not sent, because the run ended without an answer:'),
    kernel: trans.__(
      'Not sent, because the kernel ended and its variables are gone:'
    ),
    refused: trans.__('Not sent, because a question could not be asked:'),
    left: trans.__('Not sent, because the page or the notebook was left:')
  };
  return words[held];
}
