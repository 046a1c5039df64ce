/**
 * What happens between Enter and the question's way to the server: what it names is looked up, and
 * where no notebook is open one is made.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { PathExt } from '@jupyterlab/coreutils';
import { UUID } from '@lumino/coreutils';

import type { IDraft } from './draft';
import type { IDataCandidate } from '../protocol.gen';
import type { IAnalyst, IQuestion } from './tokens';
import type { IUnclear } from '../panel/whichdata';
import { folderOf } from './workspace';
import type { Workspace } from './workspace';

/** What asks a question and keeps it. */
type Sender = Pick<IAnalyst, 'ask' | 'drafts' | 'model' | 'queue'>;

/** Where a question is asked. */
export interface IPlace {
  readonly analyst: IAnalyst;
  readonly workspace: Workspace;
  readonly trans: TranslationBundle;
  /** The notebook's; empty where none is open. */
  readonly path: string;
}

/** Returns the folder in which names are looked up first. */
export function folderFor(path: string, workspace: Workspace): string {
  return path ? folderOf(path) : workspace.folder;
}

/**
 * Sends a draft, which is cleared meanwhile and put back when it could not be sent.
 *
 * @returns What must be made clear before; `null` when nothing need be.
 */
export async function sendDraft(
  place: IPlace,
  draft: IDraft,
  withoutData = false
): Promise<IUnclear | null> {
  const { analyst, path } = place;
  const id = UUID.uuid4();
  let target = path;
  analyst.queue.setAside(id, path, draft);
  analyst.drafts.clear(path);
  try {
    // While a run works its kernel can't say what it holds; the server looks names up later.
    const mustWait = path !== '' && analyst.queue.isBusy(path);
    const meant = mustWait
      ? draft
      : await withMeaning(place, draft, withoutData);
    if ('sentence' in meant) {
      // What is chosen next is about the question in the field.
      return keep(analyst, path, draft) ? meant : null;
    }
    target = path || (await newNotebook(place, meant));
    const { files, text, variables } = meant;
    const question = { text: text.trim(), files, variables };
    analyst.queue.dropAside(id);
    const isSent = await analyst.ask(
      target,
      withoutData ? { ...question, withoutData } : question
    );
    if (!isSent) {
      keep(analyst, target, draft);
    }
  } catch (error) {
    keep(analyst, target, draft);
    analyst.model.settle(target);
    analyst.model.notify(target, (error as Error).message ?? String(error));
  } finally {
    analyst.queue.dropAside(id);
  }
  return null;
}

/**
 * Asks a question that the person did not write into the field. Where it can't be sent, it is kept
 * and the person is told why.
 *
 * @returns Whether it was sent, or waits.
 */
export async function askOrKeep(
  place: Pick<IPlace, 'path' | 'trans'> & { readonly analyst: Sender },
  question: IQuestion
): Promise<boolean> {
  const { analyst, path, trans } = place;
  let problem = trans.__('there is no connection to the analyst');
  try {
    if (await analyst.ask(path, question)) {
      return true;
    }
  } catch (error) {
    problem = (error as Error).message ?? String(error);
    analyst.model.settle(path);
  }
  keep(analyst, path, question);
  const { text } = question;
  analyst.model.notify(path, trans.__('“%1” was not sent: %2', text, problem));
  return false;
}

/**
 * Puts a question that was not sent into the field; above it where that is taken, or does not hold
 * all of the question.
 *
 * @returns Whether it is in the field.
 */
function keep(analyst: Sender, path: string, question: IQuestion): boolean {
  const { files = [], text, variables = [], ...more } = question;
  const isTaken = analyst.drafts.get(path).text !== '';
  if (isTaken || Object.keys(more).length > 0) {
    analyst.queue.putFirst(path, question, 'refused');
    return false;
  }
  analyst.drafts.change(path, { text, files, variables });
  return true;
}

/** Returns the draft with what was chosen for it. */
export function chosenFor(
  draft: IDraft,
  unclear: IUnclear,
  candidate: IDataCandidate
): IDraft {
  const { kind, name } = candidate;
  const label = kind === 'file' ? PathExt.basename(name) : name;
  const { files, variables } = draft;
  return {
    text: unclear.word
      ? draft.text.replace(`@${unclear.word}`, () => label)
      : draft.text,
    files: kind === 'file' ? withOne(files, name) : files,
    variables: kind === 'variable' ? withOne(variables, name) : variables
  };
}

async function withMeaning(
  place: IPlace,
  draft: IDraft,
  withoutData: boolean
): Promise<IDraft | IUnclear> {
  const { analyst, path, trans, workspace } = place;
  if (path && !draft.text.includes('@')) {
    // The server looks up the rest; it knows what was asked before.
    return draft;
  }
  const near = folderFor(path, workspace);
  const { files, unclear, variables } = await analyst.rest.meaning({
    question: draft.text,
    notebook: path,
    near,
    files: draft.files
  });
  const open = unclear.find(one => !draft.variables.includes(one.word));
  if (open) {
    return open;
  }
  const meant: IDraft = {
    text: draft.text,
    files: files.reduce(withOne, draft.files),
    variables: variables.reduce(withOne, draft.variables)
  };
  if (path || withoutData || meant.files.length > 0) {
    return meant;
  }
  // A notebook is made beside the file: without one nothing is made yet.
  const found = await analyst.rest.files('', near);
  return {
    word: '',
    sentence:
      found.length > 0
        ? trans.__('Which data is the question about?')
        : trans.__(
            'Which data is the question about? There is no data file here: drop one on the panel, or upload it in the file browser.'
          ),
    candidates: found.map(name => ({ kind: 'file', name }))
  };
}

async function newNotebook(place: IPlace, meant: IDraft): Promise<string> {
  const { trans, workspace } = place;
  const folder =
    meant.files.length > 0 ? folderOf(meant.files[0]) : workspace.folder;
  const panel = await workspace.newNotebook(folder);
  if (!panel) {
    throw new Error(
      trans.__('The new notebook is open in another page: ask there.')
    );
  }
  return panel.context.localPath;
}

function withOne(names: readonly string[], name: string): readonly string[] {
  return names.includes(name) ? names : [...names, name];
}
