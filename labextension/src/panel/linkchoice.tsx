/**
 * Files that are links: nobody reads where they lead unless the person says so, because code in a
 * kernel, or a folder that came from elsewhere, may have laid them.
 */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import type { Analyst, IRefusedAsk } from '../model/analyst';
import { shownPath } from '../model/invisible';
import type { IWantedFile } from '../protocol.gen';

/** Asks the person, and asks the question again; one that is not sent is put back. */
export async function agreeToLinks(
  { ask, refusal }: IRefusedAsk,
  analyst: Analyst,
  trans: TranslationBundle
): Promise<void> {
  const path = ask.notebook_path;
  const { files } = refusal;
  const answer = await showDialog({
    title: trans.__('Read what a link leads to?'),
    body: (
      <div className="jp-dm-LinkChoice" data-testid="dm-link-dialog">
        <p>
          {trans._n(
            'A file of the question is a link. What it leads to would be read, and shown to the model:',
            'Files of the question are links. What they lead to would be read, and shown to the model:',
            files.length
          )}
        </p>
        <LinkList files={files} trans={trans} />
      </div>
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Read it') })
    ],
    defaultButton: 0
  });
  if (answer.button.accept) {
    const leadTo = files.map(file => file.leads_to);
    if (analyst.askAgreed(ask, leadTo)) {
      return;
    }
    const problem = trans.__('there is no connection to the analyst');
    const text = trans.__('“%1” was not sent: %2', ask.question, problem);
    analyst.model.notify(path, text);
  }
  analyst.putBack(path, ask);
}

/** Each file's name and where it leads. */
export function LinkList(props: {
  files: readonly IWantedFile[];
  trans: TranslationBundle;
}): ReactElement {
  const { files, trans } = props;
  return (
    // What scrolls must be reached with the keyboard.
    <ul className="jp-dm-FileList" tabIndex={0} aria-label={trans.__('Files')}>
      {files.map(file => (
        <li key={file.name}>
          <span className="jp-dm-FileName">{shownPath(file.name)}</span> →{' '}
          <code>{shownPath(file.leads_to)}</code>
        </li>
      ))}
    </ul>
  );
}
