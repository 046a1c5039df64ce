import {
  MimeModel,
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';

import {
  BUTTON_CLASS,
  loadClicked,
  loadFromNotebooks,
  quiet,
  remoteAddress,
  stopLookingUpHosts,
  withoutDiagrams,
  withoutRemote
} from '../model/remote';

const trans = nullTranslator.load('');
const REMOTE = 'http://remote.test/a.png?d=1';
const OWN = 'data:image/png;base64,AAAA';

function parsed(html: string): HTMLElement {
  const node = document.createElement('template');
  node.innerHTML = withoutRemote(html, trans);
  const host = document.createElement('div');
  host.append(node.content);
  return host;
}

describe('HTML of an answer', () => {
  it('names the host of a picture on a button that loads it', () => {
    const host = parsed(`<p>It is <img src="${REMOTE}" alt="a chart">.</p>`);
    const button = host.querySelector('button');
    expect(host.querySelector('img')).toBeNull();
    expect(button?.textContent).toContain('remote.test');
    expect(button?.title).toBe(REMOTE);
    loadClicked(button as HTMLElement);
    const picture = host.querySelector('img');
    expect(picture?.src).toBe(REMOTE);
    expect(picture?.alt).toBe('a chart');
    expect(picture?.referrerPolicy).toBe('no-referrer');
  });

  it('loads no other picture than the one that was clicked', () => {
    const host = parsed(`<img src="${REMOTE}"><img src="//remote.test/b">`);
    const buttons = host.querySelectorAll('button');
    expect(buttons).toHaveLength(2);
    loadClicked(host);
    expect(host.querySelectorAll('img')).toHaveLength(0);
    loadClicked(buttons[1]);
    expect(host.querySelectorAll('img')).toHaveLength(1);
    expect(host.querySelectorAll('button')).toHaveLength(1);
  });

  it('keeps pictures that lie in the answer, links and words', () => {
    const html = `<p>A <a href="http://link.example">link</a> <img src="${OWN}"></p>`;
    expect(withoutRemote(html, trans)).toBe(html);
    const table =
      '<table border="1"><tbody><tr><td>1</td></tr></tbody></table>';
    expect(withoutRemote(table, trans)).toBe(table);
    const style = '<span style="color: rgb(1, 2, 3)">x</span>';
    expect(withoutRemote(style, trans)).toBe(style);
  });

  it.each([
    `<img src="${OWN}" srcset="${REMOTE} 2x">`,
    `<img srcset="${REMOTE} 1x">`,
    `<img src="&#104;ttp://remote.test/x">`,
    `<img src="ht\ntp://remote.test/x">`,
    `<img src="\\\\remote.test\\x">`,
    `<picture><source srcset="${REMOTE}"><img src="${OWN}"></picture>`,
    `<video poster="${REMOTE}"></video>`,
    `<audio src="${REMOTE}"></audio>`,
    `<input type="image" src="${REMOTE}">`,
    `<table background="${REMOTE}"><tr><td>1</td></tr></table>`,
    `<p style="background: url(${REMOTE})">x</p>`,
    `<p style="background: u\\72l(${REMOTE})">x</p>`,
    `<p style="background-image: image-set('${REMOTE}' 1x)">x</p>`,
    `<style>@import "${REMOTE}"</style>`,
    `<link rel="stylesheet" href="${REMOTE}">`,
    `<svg><image href="${REMOTE}"></image></svg>`,
    `<svg><use href="${REMOTE}#a"></use></svg>`,
    `<svg><rect fill="url(${REMOTE}#a)"></rect></svg>`,
    `<iframe srcdoc="<img src=${REMOTE}>"></iframe>`,
    `<object data="${REMOTE}"></object>`,
    `<form action="${REMOTE}"><button formaction="${REMOTE}">x</button></form>`,
    `<a href="#x" ping="${REMOTE}">x</a>`,
    `<blockquote cite="${REMOTE}">x</blockquote>`,
    `<template><img src="${REMOTE}"></template>`
  ])('leaves nothing in %s that loads', html => {
    const host = parsed(html);
    for (const element of host.querySelectorAll('*')) {
      if (element.classList.contains(BUTTON_CLASS)) {
        continue;
      }
      for (const { value } of [...element.attributes]) {
        expect(value).not.toMatch(/remote\.test/);
      }
      expect(['style', 'link', 'iframe', 'image', 'use']).not.toContain(
        element.localName
      );
    }
  });
});

describe('the address of a picture', () => {
  it.each([
    ['http://remote.test/a', 'http://remote.test/a'],
    ['//remote.test/a', 'http://remote.test/a'],
    ['\\\\remote.test/a', 'http://remote.test/a']
  ])('of %s is %s', (written, address) => {
    expect(remoteAddress(written)?.href).toBe(address);
  });

  it.each(['a.png', '/logout', OWN, 'javascript:alert(1)', 'http://', 'x:y'])(
    'of %s is none',
    written => {
      expect(remoteAddress(written)).toBeNull();
    }
  );
});

describe('diagrams', () => {
  it.each([
    '```mermaid\nA\n```',
    '~~~ mermaid\nA\n~~~',
    '> ```mermaid\n> A\n> ```',
    '- ```Mermaid\n  A\n  ```',
    'x\r```mermaid\rA\r```',
    '```mer&#109;aid\nA\n```'
  ])('of %j are shown as text', source => {
    const text = withoutDiagrams(source);
    expect(text).toMatch(/(?:```|~~~)text/);
    expect(text).not.toMatch(/mer/i);
  });

  it('are all that is changed', () => {
    const source = 'a ```b``` c\n```python\nprint(1)\n```\n~~~\nx\n~~~';
    expect(withoutDiagrams(source)).toBe(source);
  });
});

describe('the renderers of the panel', () => {
  it('leave pictures out of markdown, and diagrams to the reader', async () => {
    const seen: string[] = [];
    const rendermime = new RenderMimeRegistry({
      initialFactories: standardRendererFactories,
      markdownParser: {
        render: source => {
          seen.push(source);
          return Promise.resolve(`<p><img src="${REMOTE}"></p>`);
        }
      }
    });
    const renderer = quiet(rendermime, trans).createRenderer('text/markdown');
    const data = { 'text/markdown': '```mermaid\nA\n```' };
    await renderer.renderModel(new MimeModel({ data, trusted: false }));
    expect(seen).toEqual(['```text\nA\n```']);
    expect(renderer.node.querySelector('img')).toBeNull();
    expect(renderer.node.querySelector('button')?.value).toBe(REMOTE);
    renderer.dispose();
  });
});

describe('words in a notebook that stand in for a picture', () => {
  function click(html: string): HTMLElement {
    const notebook = document.createElement('div');
    notebook.className = 'jp-Notebook';
    notebook.innerHTML = html;
    document.body.append(notebook);
    notebook.querySelector('span')?.click();
    return notebook;
  }

  const dialog = () => document.querySelector('.jp-Dialog');
  const settled = () => new Promise(resolve => setTimeout(resolve, 0));

  beforeAll(() => {
    loadFromNotebooks(trans);
  });

  it('ask with the whole address before it is loaded', async () => {
    const words = `<span class="dm-remote">[x: <code>${REMOTE}</code>]</span>`;
    const notebook = click(words);
    await settled();
    expect(dialog()?.textContent).toContain(REMOTE);
    expect(notebook.querySelector('img')).toBeNull();
    dialog()?.querySelector<HTMLElement>('.jp-mod-accept')?.click();
    await settled();
    expect(notebook.querySelector('img')?.src).toBe(REMOTE);
  });

  it.each(['Enter', ' '])(
    'ask when the key %j is pressed on them',
    async key => {
      const words = `<span class="dm-remote">[x: <code>${REMOTE}</code>]</span>`;
      const notebook = document.createElement('div');
      notebook.className = 'jp-Notebook';
      document.body.append(notebook);
      notebook.innerHTML = `<p>${words} and <span class="dm-remote">y</span></p>`;
      await settled();
      const [first, second] = notebook.querySelectorAll('span');
      expect(first.getAttribute('role')).toBe('button');
      expect(second.hasAttribute('tabindex')).toBe(false);
      first.focus();
      expect(document.activeElement).toBe(first);
      const press = (name: string) =>
        first.dispatchEvent(
          new KeyboardEvent('keydown', { key: name, bubbles: true })
        );
      press('a');
      await settled();
      expect(dialog()).toBeNull();
      press(key);
      await settled();
      expect(dialog()?.textContent).toContain(REMOTE);
      // A key that is held down must not answer as well.
      const cancel = dialog()?.querySelector<HTMLElement>('.jp-mod-reject');
      expect(document.activeElement).toBe(cancel);
      cancel?.click();
      await settled();
    }
  );

  it('ask nothing where they name no address elsewhere', async () => {
    click('<span class="dm-remote"><code>javascript:alert(1)</code></span>');
    await settled();
    expect(dialog()).toBeNull();
  });
});

it('keeps the browser from looking up hosts of links', () => {
  stopLookingUpHosts();
  const meta = document.head.querySelector<HTMLMetaElement>(
    'meta[http-equiv="x-dns-prefetch-control"]'
  );
  expect(meta?.content).toBe('off');
});
