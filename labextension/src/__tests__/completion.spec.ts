import { errorQuestion } from '../notebook/cells';
import { candidatesFor, isDataFile, mentionAt } from '../notebook/completion';

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

describe('candidatesFor', () => {
  const variable = (name: string) => ({
    name,
    kind: 'DataFrame',
    shape: [3, 2],
    columns: [{ name: 'day', dtype: 'object', samples: [] }]
  });

  it('keeps the order of the server and says where a file elsewhere lies', () => {
    const files = ['work/sales.csv', 'old/sales.csv', 'sales.csv'];
    expect(candidatesFor(files, [], 'sal', 'work')).toEqual([
      { kind: 'file', value: 'work/sales.csv', label: 'sales.csv', detail: '' },
      {
        kind: 'file',
        value: 'old/sales.csv',
        label: 'sales.csv',
        detail: 'old'
      },
      { kind: 'file', value: 'sales.csv', label: 'sales.csv', detail: '/' }
    ]);
  });

  it('lists the variables that fit, those that begin with the query first', () => {
    const tables = ['resales', 'Sales', 'other'].map(variable);
    const found = candidatesFor([], tables, 'sal', '');
    expect(found.map(one => one.label)).toEqual(['Sales', 'resales']);
    expect(found[0].detail).toBe('DataFrame · 3 × 2 · day');
  });

  it('lists a file whose path has the letters of the query in order, and no other', () => {
    const files = ['work/Sales.csv', 'apples.csv', 'old/s.csv'];
    const found = candidatesFor(files, [], 'wsa', '');
    expect(found.map(one => one.value)).toEqual(['work/Sales.csv']);
  });

  it('leaves room for both', () => {
    const files = Array.from({ length: 12 }, (_, n) => `f${n}.csv`);
    const tables = Array.from({ length: 12 }, (_, n) => variable(`f${n}`));
    const found = candidatesFor(files, tables, 'f', '');
    expect(found.filter(one => one.kind === 'file')).toHaveLength(5);
    expect(found).toHaveLength(8);
  });
});

describe('isDataFile', () => {
  it.each([
    ['a/b.CSV', true],
    ['b.parquet', true],
    ['a/survey.sav', true],
    ['b.csv.gz', true],
    ['all.zip', true],
    ['b.tar.gz', true],
    ['a/.csv', false],
    ['b.html', false],
    ['b.gz', false],
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
