import { nullTranslator } from '@jupyterlab/translation';

import type { Analyst } from '../model/analyst';
import { Drafts } from '../model/draft';
import { agreeToLinks } from '../panel/linkchoice';
import { AnalystModel } from '../model/model';
import type { IAsk, IRefused } from '../protocol.gen';
import { PATH } from './messages';

const ASK: IAsk = {
  kind: 'ask',
  request_id: 'request-1',
  notebook_path: PATH,
  question: 'How many?',
  files: ['work/linked.csv']
};
const REFUSAL: IRefused = {
  kind: 'refused',
  request_id: 'request-1',
  reason: 'link',
  message: 'a link is followed only when you agree',
  files: [
    { name: 'work/linked.csv', leads_to: '/home/me/.ssh/id_rsa' },
    { name: 'work/other.csv', leads_to: '/data/a.csv' }
  ],
  candidates: []
};

describe('agreeToLinks', () => {
  let model: AnalystModel;
  let drafts: Drafts;
  let asked: unknown[][];
  let isConnected: boolean;

  beforeEach(() => {
    model = new AnalystModel();
    drafts = new Drafts();
    asked = [];
    isConnected = true;
  });

  /** Presses a button of the dialog, and waits until all is done; returns what it said. */
  async function answer(button: string): Promise<string> {
    const analyst = {
      model,
      drafts,
      putBack: (path: string, ask: IAsk) => drafts.putBack(path, ask),
      askAgreed: (...args: unknown[]) => {
        asked.push(args);
        return isConnected;
      }
    } as unknown as Analyst;
    const trans = nullTranslator.load('dm_jupyter');
    const done = agreeToLinks({ ask: ASK, refusal: REFUSAL }, analyst, trans);
    await new Promise(resolve => setTimeout(resolve, 50));
    const dialog = document.querySelector('.jp-Dialog');
    const text = dialog?.textContent ?? '';
    dialog?.querySelector<HTMLElement>(button)?.click();
    await done;
    return text;
  }

  it('shows where each link leads, and asks again with what was agreed to', async () => {
    const text = await answer('.jp-mod-warn');
    expect(text).toContain('work/linked.csv → /home/me/.ssh/id_rsa');
    expect(text).toContain('work/other.csv → /data/a.csv');
    expect(asked).toEqual([[ASK, ['/home/me/.ssh/id_rsa', '/data/a.csv']]]);
    expect(drafts.get(PATH).text).toBe('');
  });

  it('puts the question back when the person would rather not', async () => {
    await answer('.jp-mod-reject');
    expect(asked).toEqual([]);
    expect(drafts.get(PATH)).toMatchObject({
      text: 'How many?',
      files: ['work/linked.csv']
    });
    expect(model.notebook(PATH).notices).toEqual([]);
  });

  it('puts the question back, and says why, when nothing is connected', async () => {
    isConnected = false;
    await answer('.jp-mod-warn');
    expect(drafts.get(PATH).text).toBe('How many?');
    expect(model.notebook(PATH).notices[0].text).toContain('no connection');
  });
});
