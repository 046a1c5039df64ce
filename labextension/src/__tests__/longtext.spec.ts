import {
  MimeModel,
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';

import { cut, cutLongText } from '../notebook/longtext';

const STDOUT = 'application/vnd.jupyter.stdout';
const STDERR = 'application/vnd.jupyter.stderr';

describe('cut', () => {
  const lines = Array.from({ length: 1000 }, (_, n) => `line ${n}\n`).join('');

  it('loses and repeats nothing', () => {
    const { head, tail, hiddenCharacters } = cut(lines, 100);
    expect(lines.startsWith(head)).toBe(true);
    expect(lines.endsWith(tail)).toBe(true);
    expect(head.length + hiddenCharacters + tail.length).toBe(lines.length);
  });

  it('cuts at line ends', () => {
    const { head, tail } = cut(lines, 100);
    expect(head.endsWith('\n')).toBe(true);
    expect(tail).toMatch(/^line \d+\n/);
  });

  it('cuts one endless line anywhere', () => {
    const { head, tail } = cut('x'.repeat(1000), 100);
    expect([head.length, tail.length]).toEqual([100, 100]);
  });

  it('cuts before a last line that ends the text', () => {
    const { tail } = cut(`${'x'.repeat(1000)}\n`, 100);
    expect(tail).toHaveLength(100);
  });
});

describe('the renderer of printed text', () => {
  let limit = 1000;
  const rendermime = new RenderMimeRegistry({
    initialFactories: standardRendererFactories
  });
  cutLongText(rendermime, {
    limit: () => limit,
    trans: nullTranslator.load('')
  });

  async function draw(text: string, mimeType = STDOUT) {
    const renderer = rendermime.createRenderer(mimeType);
    const print = (more: string) =>
      renderer.renderModel(new MimeModel({ data: { [mimeType]: more } }));
    await print(text);
    const button = renderer.node.querySelector('button');
    return { node: renderer.node, button, print };
  }

  beforeEach(() => {
    limit = 1000;
  });

  it('draws a short text as it is', async () => {
    const { node, button } = await draw('one\ntwo\n');
    expect(button).toBeNull();
    expect(node.textContent).toBe('one\ntwo\n');
    expect(node.classList).toContain('jp-RenderedText');
  });

  it.each([STDOUT, STDERR])('draws the ends of a long %s', async mimeType => {
    const text = `first\n${'middle\n'.repeat(1000)}last\n`;
    const { node, button } = await draw(text, mimeType);
    expect(node.textContent).toMatch(/^first\n/);
    expect(node.textContent).toMatch(/last\n$/);
    expect(node.textContent?.length).toBeLessThan(1200);
    expect(button?.textContent).toMatch(/6,0\d\d characters are not drawn/);
  });

  it('draws all of it when asked, and what comes after', async () => {
    const text = 'x\n'.repeat(1000);
    const { node, button, print } = await draw(text);
    button?.click();
    await Promise.resolve();
    expect(node.textContent).toBe(text);
    await print(`${text}more\n`);
    expect(node.textContent).toBe(`${text}more\n`);
  });

  it('keeps the drawn beginning while the text grows', async () => {
    const text = 'x\n'.repeat(1000);
    const { node, print } = await draw(text);
    const head = node.firstChild;
    await print(`${text}the end\n`);
    expect(node.firstChild).toBe(head);
    expect(node.textContent).toMatch(/the end\n$/);
  });

  it('never cuts at a limit of 0', async () => {
    limit = 0;
    const { button } = await draw('x\n'.repeat(100_000));
    expect(button).toBeNull();
  });
});
