/**
 * Signs that are invisible, or turn the writing around: shown by their numbers, because a person
 * approves what they see.
 */

/** All but whether the sign before is a text or a coloured picture. */
const INVISIBLE =
  /(?![\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** The scripts whose words are written with joiners and non-joiners of no width. */
const JOINING =
  'Arab Beng Deva Gujr Guru Khmr Knda Mlym Mong Mymr Orya Sinh Syrc Taml Telu'
    .split(' ')
    .map(script => `\\p{scx=${script}}`)
    .join('');

/** Signs of no width inside such a word, or between the parts of one picture. */
const JOINS = [
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])`,
  '(?<=\\p{ExtPict}\\ufe0f?|\\p{EMod})\\u200d(?=\\p{ExtPict})'
].join('|');
const JOINS_OR_INVISIBLE = new RegExp(`(${JOINS})|${INVISIBLE.source}`, 'gu');
const LINES: readonly string[] = ['\n', '\r', '\t'];

/** A path in one line, with invisible signs by their numbers. */
export function shownPath(path: string): string {
  return shown(path, []);
}

/** Code in its lines, with invisible signs by their numbers. */
export function shownCode(source: string): string {
  return shown(source, LINES);
}

/** The numbers of the invisible signs in code, each once. */
export function invisibleIn(source: string): string[] {
  const signs = [...source.matchAll(JOINS_OR_INVISIBLE)]
    .filter(([sign, join]) => join === undefined && !LINES.includes(sign))
    .map(([sign]) => escaped(sign));
  return [...new Set(signs)];
}

function shown(text: string, kept: readonly string[]): string {
  return text.replace(JOINS_OR_INVISIBLE, (sign, join?: string) =>
    kept.includes(sign) ? sign : (join ?? escaped(sign))
  );
}

function escaped(sign: string): string {
  const code = sign.codePointAt(0) ?? 0;
  return `\\u{${code.toString(16)}}`;
}
