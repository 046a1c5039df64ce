/**
 * Says early which files a question will be about: a model on the server's machine reads them
 * while the person still writes.
 */
import type { Choices } from './choices';
import type { Drafts } from './draft';
import type { IReadAhead } from '../protocol.gen';

/** For several files that are chosen one after another. */
const QUIET_MS = 300;

/** Follows the drafts and the chosen model from now on. */
export function tellFilesEarly(
  drafts: Drafts,
  choices: Choices,
  send: (message: IReadAhead) => void
): void {
  let path = '';
  let told = '';
  let timer: ReturnType<typeof setTimeout> | undefined;

  const look = () => {
    const message: IReadAhead = {
      kind: 'read_ahead',
      notebook_path: path,
      files: [...drafts.get(path).files],
      model: choices.model
    };
    const text = JSON.stringify(message);
    if (text === told) {
      return;
    }
    told = text;
    clearTimeout(timer);
    // Without a notebook there is no kernel to read them for.
    if (path && message.files.length > 0) {
      timer = setTimeout(() => send(message), QUIET_MS);
    }
  };
  drafts.changed.connect((_, changed) => {
    path = changed;
    look();
  });
  choices.changed.connect(look);
}
