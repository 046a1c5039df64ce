import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { ReactElement } from 'react';

import { Drafts } from '../model/draft';
import { AnalystModel } from '../model/model';
import type { IAnalyst } from '../model/tokens';
import type { Workspace } from '../model/workspace';
import { AnalystPanel } from '../panel/panel';
import { PATH } from './messages';

const OTHER = 'other/other.ipynb';

/** The panel as a place to drop files on. */
class BarePanel extends AnalystPanel {
  protected override render(): ReactElement {
    return <></>;
  }
}

/** Files of the person's computer, as a browser hands them over. */
function dropOf(...names: string[]): Event {
  const files = names.map(name => new File([], name));
  const dataTransfer = { types: ['Files'], files };
  return Object.assign(new Event('drop'), { dataTransfer });
}

describe('files dropped on the panel', () => {
  it('go to the notebook that was open then, as does the reason for one that does not', async () => {
    const drafts = new Drafts();
    const model = new AnalystModel();
    const contents = { localPath: (path: string) => path };
    const analyst = { currentPath: PATH, drafts, model, contents };
    const workspace = {
      upload: async (file: File, folder: string) => {
        analyst.currentPath = OTHER;
        if (file.name === 'bad.csv') {
          throw new Error('no room');
        }
        return `${folder}/${file.name}`;
      }
    };
    const panel = new BarePanel({
      analyst: analyst as unknown as IAnalyst,
      workspace: workspace as unknown as Workspace,
      rendermime: {} as IRenderMimeRegistry,
      trans: nullTranslator.load('dm_jupyter'),
      hasOwnWidth: Promise.resolve(true)
    });
    Widget.attach(panel, document.body);
    panel.node.dispatchEvent(dropOf('good.csv', 'bad.csv'));
    await new Promise(resolve => setTimeout(resolve, 0));
    expect(drafts.get(PATH).files).toEqual(['work/good.csv']);
    expect(drafts.get(OTHER).files).toEqual([]);
    const texts = (path: string) =>
      model.notebook(path).notices.map(notice => notice.text);
    expect(texts(PATH)).toEqual(['bad.csv was not uploaded: no room']);
    expect(texts(OTHER)).toEqual([]);
    panel.dispose();
  });
});
