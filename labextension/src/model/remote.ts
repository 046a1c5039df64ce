/**
 * Pictures from elsewhere: whoever answers for one learns that it was asked for, and by its address
 * whatever a run has put into that. So none is loaded before the person says so.
 */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';

/** Class of the button that stands in for a picture in the panel. */
export const BUTTON_CLASS = 'jp-dm-Remote';
/** Class of the words that stand in for a picture in a notebook; the server writes them. */
const WORDS_CLASS = 'dm-remote';

/** Elements that stay out of the panel, with all that they would load. */
const LEFT_OUT =
  'applet,audio,base,embed,feimage,foreignobject,form,frame,iframe,image,link,meta,' +
  'object,portal,script,source,style,template,track,use,video,input:not([type="checkbox"])';
/** Attributes that pass; any other one is taken out. */
const PASSING = new Set(
  (
    'align alt border cellpadding cellspacing checked class colspan data-jupyter-id dir disabled ' +
    'headers height href id lang name open rel role rowspan scope span start summary tabindex ' +
    'target title type valign value width'
  ).split(' ')
);
const OWN_PICTURE = /^data:image\/[a-z0-9.+-]+[;,]/i;
const FENCE = /^([ \t>*+.\d)-]*(?:`{3,}|~{3,}))([^\n]*)$/gm;
const LANGUAGE = /^\s*[\w+#.-]*\s*$/;
/** A value of CSS that can be no address: no function but of colours and sums, no escape. */
const PLAIN_STYLE = /^(?:[^\\()@]|\b(?:rgba?|hsla?|calc|var)\([^()\\@]*\))*$/i;

/** Returns the address that a picture would be loaded from; `null` where it is no web page's. */
export function remoteAddress(written: string): URL | null {
  let address: URL;
  try {
    address = new URL(written, document.baseURI);
  } catch {
    return null;
  }
  const isElsewhere = address.origin !== window.location.origin;
  return /^https?:$/.test(address.protocol) && isElsewhere ? address : null;
}

/**
 * Returns sanitized HTML in which nothing is left that loads by itself; buttons stand in for
 * pictures from elsewhere.
 */
export function withoutRemote(html: string, trans: TranslationBundle): string {
  // A document that is shown nowhere loads nothing.
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  body.querySelectorAll(LEFT_OUT).forEach(element => {
    element.remove();
  });
  body.querySelectorAll('img').forEach(picture => {
    const source = picture.getAttribute('src') ?? '';
    if (!OWN_PICTURE.test(source)) {
      picture.replaceWith(standIn(picture, source, trans));
    }
  });
  body.querySelectorAll('*').forEach(keepPassing);
  return body.innerHTML;
}

function standIn(
  picture: HTMLImageElement,
  source: string,
  trans: TranslationBundle
): Node {
  const made = picture.ownerDocument;
  const address = remoteAddress(source);
  if (!address) {
    return made.createTextNode(picture.alt || source);
  }
  const button = made.createElement('button');
  button.className = BUTTON_CLASS;
  button.type = 'button';
  button.title = address.href;
  button.value = address.href;
  button.name = picture.alt;
  button.textContent = trans.__(
    'Picture from %1 not loaded: load it',
    address.host
  );
  return button;
}

function keepPassing(element: Element): void {
  const isPicture = element.localName === 'img';
  for (const { name, value } of [...element.attributes]) {
    const passes =
      PASSING.has(name) ||
      name.startsWith('aria-') ||
      (name === 'src' && isPicture) ||
      (name === 'style' && PLAIN_STYLE.test(value));
    if (!passes || (name === 'href' && element.localName !== 'a')) {
      element.removeAttribute(name);
    }
  }
}

/** Returns markdown whose diagrams are shown as they are written: drawing one could load things. */
export function withoutDiagrams(source: string): string {
  const text = source.replace(/\r\n?|[\u2028\u2029]/g, '\n');
  return text.replace(FENCE, (whole: string, fence: string, about: string) => {
    const isInline = fence.includes('`') && about.includes('`');
    const isCode = LANGUAGE.test(about) && !/mermaid/i.test(about);
    return isInline || isCode ? whole : `${fence}text`;
  });
}

/** Returns the registry with renderers that load nothing from elsewhere. */
export function quiet(
  rendermime: IRenderMimeRegistry,
  trans: TranslationBundle
): IRenderMimeRegistry {
  const { sanitizer, markdownParser: parser } = rendermime;
  const still: IRenderMime.ISanitizer = {
    sanitize: (dirty, options) =>
      withoutRemote(sanitizer.sanitize(dirty, options), trans),
    getAutolink: () => sanitizer.getAutolink?.() ?? true,
    get allowNamedProperties() {
      return sanitizer.allowNamedProperties;
    }
  };
  return rendermime.clone({
    sanitizer: still,
    markdownParser: parser
      ? { render: source => parser.render(withoutDiagrams(source)) }
      : undefined
  });
}

/** Loads the picture whose button was clicked in the panel, and no other. */
export function loadClicked(target: EventTarget): void {
  const button =
    target instanceof Element && target.closest(`button.${BUTTON_CLASS}`);
  const address = button && remoteAddress((button as HTMLButtonElement).value);
  if (address) {
    button.replaceWith(
      pictureAt(address, (button as HTMLButtonElement).name || address.host)
    );
  }
}

function pictureAt(address: URL, alt: string): HTMLImageElement {
  const picture = document.createElement('img');
  picture.alt = alt;
  picture.referrerPolicy = 'no-referrer';
  picture.src = address.href;
  return picture;
}

const WORDS = `.jp-Notebook span.${WORDS_CLASS}`;

/**
 * Loads a picture that a run wrote into a notebook when its words are clicked, or Enter or the space
 * bar is pressed on them, after a question that shows the whole address: the words are the run's.
 */
export function loadFromNotebooks(trans: TranslationBundle): void {
  const load = (event: Event) => {
    const words =
      event.target instanceof Element && event.target.closest(WORDS);
    const address = words ? addressIn(words) : null;
    if (words && address) {
      event.preventDefault();
      void askAndLoad(words, address, trans);
    }
  };
  document.addEventListener('click', load);
  document.addEventListener('keydown', event => {
    if (event.key === 'Enter' || event.key === ' ') {
      load(event);
    }
  });
  // JupyterLab's sanitizer takes these attributes out of what a notebook's file says.
  new MutationObserver(records => {
    for (const { addedNodes } of records) {
      addedNodes.forEach(asButtons);
    }
  }).observe(document.body, { childList: true, subtree: true });
}

function addressIn(words: Element): URL | null {
  const written = words.querySelector('code')?.textContent;
  return written ? remoteAddress(written) : null;
}

/** Makes words that load a picture what the keyboard can reach. */
function asButtons(added: Node): void {
  if (!(added instanceof HTMLElement)) {
    return;
  }
  const found = [...added.querySelectorAll<HTMLElement>(WORDS)];
  for (const words of added.matches(WORDS) ? [added, ...found] : found) {
    if (addressIn(words)) {
      words.setAttribute('role', 'button');
      words.tabIndex = 0;
      // Enter and the space bar are for the words, not for the notebook.
      words.dataset.lmSuppressShortcuts = 'true';
    }
  }
}

async function askAndLoad(
  words: Element,
  address: URL,
  trans: TranslationBundle
): Promise<void> {
  const answer = await showDialog({
    title: trans.__('Load the picture from %1?', address.host),
    body: trans.__(
      '%1 gets this address, which can carry your data: %2',
      address.host,
      address.href
    ),
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: trans.__('Load') })
    ],
    // The key that opened it, held down, would say yes.
    defaultButton: 0
  });
  if (answer.button.accept) {
    words.replaceWith(pictureAt(address, address.host));
  }
}

/** Keeps the browser from looking up the hosts of links that nobody has clicked. */
export function stopLookingUpHosts(): void {
  const meta = document.createElement('meta');
  meta.httpEquiv = 'x-dns-prefetch-control';
  meta.content = 'off';
  document.head.append(meta);
}
