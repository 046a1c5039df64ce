/* global CustomEvent, document, history, location, window */
/* Filters the list of questions, and writes a notebook into the page when its question is opened.

   Nothing here turns text into markup: a notebook is a copy of its <template>, and the page's policy
   (require-trusted-types-for) refuses innerHTML and its like. */
'use strict';

/* exported page */
const page = (() => {
  const QUIET_MS = 150;
  const form = document.getElementById('filters');
  const shown = document.getElementById('shown');
  const entries = [...document.querySelectorAll('details.entry')].map(
    element => ({
      element,
      keys: new Set(element.dataset.keys.split('\n')),
      summary: element.querySelector('summary'),
      template: element.querySelector('template')
    })
  );

  function holds(entry, words) {
    const texts = [
      entry.summary.textContent,
      entry.template.content.textContent,
      entry.note ?? ''
    ];
    return texts.some(text => text.toLowerCase().includes(words));
  }

  const list = document.getElementById('entries');
  let order = '';

  function sort() {
    const name = form.elements.order.value;
    if (name === order) {
      return;
    }
    order = name;
    const sorted = name
      ? entries.toSorted(
          (one, other) =>
            Number(other.element.dataset[name]) -
            Number(one.element.dataset[name])
        )
      : entries;
    list.append(...sorted.map(entry => entry.element));
  }

  function apply() {
    sort();
    const words = form.elements.words.value.trim().toLowerCase();
    const wanted = [...form.querySelectorAll('select')]
      .filter(select => select.value && select.id !== 'order')
      .map(select => `${select.name}=${select.value}`);
    let count = 0;
    for (const entry of entries) {
      const matches =
        wanted.every(key => entry.keys.has(key)) &&
        (!words || holds(entry, words));
      entry.element.hidden = !matches;
      count += matches ? 1 : 0;
    }
    shown.textContent = `${count} of ${entries.length} shown`;
  }

  function write(details) {
    details.querySelector(':scope > .notebook')?.remove();
    if (!details.open) {
      return;
    }
    const copy = details.querySelector('template').content.cloneNode(true);
    for (const image of copy.querySelectorAll('img[data-picture]')) {
      const kept = document.getElementById(`picture-${image.dataset.picture}`);
      image.src = `data:${kept.dataset.kind};base64,${kept.textContent}`;
    }
    details.append(copy);
    details.dispatchEvent(new CustomEvent('written'));
    history.replaceState(null, '', `#${details.id}`);
  }

  function showFailures() {
    form.reset();
    form.elements.verdict.value = 'failed';
    apply();
    document.getElementById('questions').scrollIntoView();
    entries
      .find(entry => !entry.element.hidden)
      ?.summary.focus({ preventScroll: true });
  }

  function follow() {
    const name = location.hash.slice(1);
    if (name === 'failed') {
      showFailures();
      return;
    }
    const found = entries.find(entry => entry.element.id === name);
    if (found) {
      found.element.hidden = false;
      found.element.open = true;
      found.element.scrollIntoView();
    }
  }

  let waiting = 0;
  form.addEventListener('input', () => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(apply, QUIET_MS);
  });
  form.addEventListener('reset', () => window.setTimeout(apply));
  form.addEventListener('submit', event => event.preventDefault());
  for (const entry of entries) {
    entry.element.addEventListener('toggle', () => write(entry.element));
  }
  for (const link of document.querySelectorAll('a[data-filter=failed]')) {
    link.addEventListener('click', event => {
      event.preventDefault();
      history.replaceState(null, '', '#failed');
      showFailures();
    });
  }
  window.addEventListener('hashchange', follow);
  // A browser keeps what was chosen before a reload.
  apply();
  follow();
  return { apply, entries, form };
})();
