/* global document, fetch, history, location, page, sessionStorage, window */
/* The part of a page that a server keeps up to date: it loads again when the run has more to show,
   with the list as it was, and sends notes to be kept beside the run. */
(() => {
  const LOOK_MS = 2000;
  const FRAMES = 10;
  const READING_MS = 1000;
  const PLACE = 'place';
  const status = document.getElementById('live');
  const following = status.textContent;
  const version = document.body.dataset.version;
  const kept = new Map();

  function field(entry) {
    return entry.element.querySelector(':scope > .notebook textarea');
  }

  function say(words) {
    if (status.textContent !== words) {
      status.textContent = words;
    }
  }

  /* What a person sees: choices, open questions, and where the first one in sight stands. */
  function remember() {
    const seen = page.entries.filter(entry => !entry.element.hidden);
    const first = seen
      .map(entry => ({ entry, box: entry.element.getBoundingClientRect() }))
      .filter(({ box }) => box.bottom > 0 && box.top < window.innerHeight)
      .sort((one, other) => one.box.top - other.box.top)[0];
    const place = {
      choices: [...page.form.elements]
        .filter(element => element.name)
        .map(element => [element.name, element.value]),
      open: page.entries
        .filter(entry => entry.element.open)
        .map(entry => entry.element.dataset.key),
      top: window.scrollY,
      first: first && [first.entry.element.dataset.key, first.box.top]
    };
    sessionStorage.setItem(PLACE, JSON.stringify(place));
  }

  async function restore() {
    const place = JSON.parse(sessionStorage.getItem(PLACE) ?? 'null');
    sessionStorage.removeItem(PLACE);
    if (!place) {
      return;
    }
    for (const [name, value] of place.choices) {
      const element = page.form.elements[name];
      if (element) {
        element.value = value;
        if (element.value !== value) {
          element.value = '';
        }
      }
    }
    page.apply();
    const open = new Set(place.open);
    const changed = page.entries
      .map(entry => entry.element)
      .filter(element => element.open !== open.has(element.dataset.key));
    await Promise.all(
      changed.map(
        element =>
          new Promise(done => {
            element.addEventListener('toggle', done, { once: true });
            element.open = open.has(element.dataset.key);
          })
      )
    );
    history.replaceState(null, '', location.pathname);
    window.scrollTo(0, place.top);
    const first = page.entries.find(
      entry => place.first && entry.element.dataset.key === place.first[0]
    );
    // What is not near the window is laid out when it comes near, and may then move the rest.
    for (let frame = 0; first && frame < FRAMES; frame++) {
      const { top } = first.element.getBoundingClientRect();
      window.scrollBy(0, top - place.first[1]);
      await new Promise(done => window.requestAnimationFrame(done));
    }
  }

  function isTyping() {
    return page.entries.some(entry => {
      const text = field(entry);
      return text && text.value !== kept.get(entry);
    });
  }

  async function look() {
    try {
      const response = await fetch('state', { cache: 'no-store' });
      const state = await response.json();
      say(state.fault || following);
      if (state.version !== version && !isTyping()) {
        remember();
        history.scrollRestoration = 'manual';
        history.replaceState(null, '', location.pathname);
        location.reload();
        return;
      }
    } catch {
      say(
        'The server of this page has ended: it shows no more of the run, and keeps no notes.'
      );
    }
    window.setTimeout(look, LOOK_MS);
  }

  function mark(entry, note) {
    kept.set(entry, note);
    entry.note = note;
    entry.summary.querySelector('.noted').hidden = !note;
    entry.keys.delete(note ? 'note=no' : 'note=yes');
    entry.keys.add(note ? 'note=yes' : 'note=no');
  }

  /* A click on the button leaves the field as well: the second of the two asks for nothing, and
     replaces no note of somebody else's that has only just come into sight. */
  async function keep(entry, text, words) {
    if (entry.isKeeping || Date.now() < (entry.seenAt ?? 0) + READING_MS) {
      return;
    }
    entry.isKeeping = true;
    let isKept = text.value !== kept.get(entry);
    while (isKept) {
      const note = text.value;
      isKept = await send(entry, note, words);
      if (isKept && text.value === note) {
        text.value = kept.get(entry);
        break;
      }
    }
    entry.isKeeping = false;
  }

  async function send(entry, note, words) {
    const was = kept.get(entry);
    words.textContent = 'keeping …';
    const [run, id, trial] = JSON.parse(entry.element.dataset.key);
    try {
      const response = await fetch('notes', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ run, id, trial, text: note, was })
      });
      const reply = await response.json();
      if (response.status === 409) {
        mark(entry, reply.text);
        entry.seenAt = Date.now();
        words.textContent =
          `Not kept: meanwhile the note is “${reply.text}”. ` +
          'Keep again to replace it.';
      } else if (response.ok) {
        mark(entry, reply.text);
        words.textContent = `kept in ${reply.file}`;
        return true;
      } else {
        words.textContent = `Not kept: ${reply.error}`;
      }
    } catch {
      words.textContent =
        'Not kept: the server of this page has ended. Copy what you wrote.';
    }
    return false;
  }

  for (const entry of page.entries) {
    entry.element.addEventListener('written', () => {
      const text = field(entry);
      if (!kept.has(entry)) {
        kept.set(entry, text.value);
      }
      text.value = kept.get(entry);
      const words = text.form.querySelector('[role=status]');
      text.addEventListener('change', () => keep(entry, text, words));
      text.form.addEventListener('submit', event => {
        event.preventDefault();
        keep(entry, text, words);
      });
    });
  }
  restore();
  window.setTimeout(look, LOOK_MS);
})();
