import { errorQuestion } from '../cells';
import { isDataFile, matching, mentionAt } from '../completion';
import type { ICandidate } from '../completion';

function file(label: string): ICandidate {
  return { kind: 'file', value: label, label, detail: '' };
}

describe('mentionAt', () => {
  it.each([
    ['Sum @sa', 7, { start: 4, query: 'sa' }],
    ['@', 1, { start: 0, query: '' }],
    ['line\n@x', 7, { start: 5, query: 'x' }],
    ['Sum @sa now', 7, { start: 4, query: 'sa' }],
    ['Sum @sa now', 11, null],
    ['mail me@home', 12, null],
    ['none', 4, null]
  ])('of %j at %d', (text, caret, mention) => {
    expect(mentionAt(text, caret)).toEqual(mention);
  });
});

describe('matching', () => {
  it('puts first what begins with the query', () => {
    const found = matching([file('resales.csv'), file('Sales.csv')], 'sal');
    expect(found.map(one => one.label)).toEqual(['Sales.csv', 'resales.csv']);
  });

  it('leaves out what does not fit', () => {
    expect(matching([file('a.csv')], 'b')).toEqual([]);
  });
});

describe('isDataFile', () => {
  it.each([
    ['a/b.CSV', true],
    ['b.parquet', true],
    ['b.ipynb', false],
    ['csv', false]
  ])('of %s', (path, expected) => {
    expect(isDataFile(path)).toBe(expected);
  });
});

describe('errorQuestion', () => {
  const error = { source: '1/0', name: 'ZeroDivisionError', value: 'by zero' };

  it('holds the wish, the cell and the error', () => {
    expect(errorQuestion(error, 'fix')).toBe(
      'Fix the error in this cell and run the corrected cell:\n\n' +
        '```python\n1/0\n```\n\nZeroDivisionError: by zero'
    );
    expect(errorQuestion(error, 'explain')).toMatch(/^Explain the error/);
  });

  it('fences a cell that holds a fence', () => {
    const source = 'x = """\n```\n"""';
    expect(errorQuestion({ ...error, source }, 'fix')).toContain(
      '````python\nx = """\n```\n"""\n````'
    );
  });
});
