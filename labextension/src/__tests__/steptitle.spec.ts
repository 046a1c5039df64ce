import { nullTranslator } from '@jupyterlab/translation';

import { withOutput } from '../model/outputs';
import type { IOutputPicture, Outputs } from '../model/outputs';
import { emptyStep } from '../model/pictures';
import type { IStepPicture } from '../model/pictures';
import type { Operation } from '../protocol.gen';
import { firstSentence, stepTitle } from '../model/steptitle';
import { printed } from './messages';

const trans = nullTranslator.load('dm_jupyter');
const LAST = { isSentBack: false, isSecondAnswer: false };

function titleOf(
  part: Partial<IStepPicture>,
  source = '',
  outputs: readonly IOutputPicture[] = []
): string {
  const step = { ...emptyStep(1, 0), cellId: 'cell-1', status: 'ok', ...part };
  return stepTitle(step, source, outputs, LAST, trans);
}

describe('firstSentence', () => {
  it.each([
    ['Grouped by species. Then took the mean.', 'Grouped by species'],
    [
      '**First**, I load `sales.csv` into pandas:\n',
      'First, I load sales.csv into pandas'
    ],
    ['# Plan\n\nCount the rows.', 'Plan'],
    ['1. Read the file\n2. Count', 'Read the file'],
    ['The mean is 3.5 of 7. It is low.', 'The mean is 3.5 of 7'],
    ['Take one, e.g. the first. Then go on.', 'Take one, e.g. the first'],
    ['Which month is best? I look.', 'Which month is best?'],
    ['```python\nprint(1)\n```', ''],
    ['snake_case_name stays', 'snake_case_name stays'],
    ['Tidy\u202e up\u2066 now', 'Tidy up now'],
    ['…\n', '']
  ])('of %j', (text, sentence) => {
    expect(firstSentence(text)).toBe(sentence);
  });

  it('cuts a long one between words', () => {
    const cut = firstSentence('word '.repeat(60));
    expect(cut.length).toBeLessThanOrEqual(111);
    expect(cut).toMatch(/word…$/);
  });
});

describe('stepTitle', () => {
  it('takes the model’s words, else those of the code, else plain ones', () => {
    const code =
      'import pandas as pd\ndf = pd.read_csv("a.csv")\n# Mean by species\ndf.mean()';
    expect(titleOf({ thought: 'Take the mean.' }, code)).toBe('Take the mean');
    expect(titleOf({}, code)).toBe('Mean by species');
    expect(titleOf({}, 'df.mean()\n# late')).toBe('Ran a cell');
    expect(titleOf({ language: 'sql' }, 'SELECT 1')).toBe('Ran a query');
    expect(titleOf({ cellId: null, status: 'void' })).toBe('Wrote no code');
  });

  it('says that a chart was drawn', () => {
    const image = 'data:image/png;base64,AA';
    const kinds = { isError: false, isElsewhere: false };
    const output = { stream: '', text: '', image, ...kinds };
    expect(titleOf({}, 'df.plot()', [output])).toBe('Drew a chart');
  });
});

describe('what a cell showed', () => {
  const shown = (outputs: readonly object[]): readonly IOutputPicture[] =>
    outputs.reduce<Outputs>(
      (all, output) =>
        withOutput(all, {
          op: 'append_output',
          cell_id: 'c',
          output: output as { [key: string]: unknown }
        }),
      {}
    ).c ?? [];

  it('joins the pieces of a stream, and keeps the ends of a long one', () => {
    const pieces = Array.from({ length: 3000 }, (_, n) =>
      printed('c', `${n}\n`)
    );
    const outputs = pieces.reduce<Outputs>(withOutput, {}).c;
    expect(outputs).toHaveLength(1);
    expect(outputs[0].text.startsWith('0\n1\n')).toBe(true);
    expect(outputs[0].text.endsWith('2999\n')).toBe(true);
    expect(outputs[0].text.length).toBeLessThan(1300);
  });

  it('keeps bitmaps, and nothing that a browser would run', () => {
    const html = { 'text/html': '<script>1</script>', 'text/plain': 'a table' };
    const svg = { 'image/svg+xml': '<svg/>' };
    const png = { 'image/png': 'AA\nBB', 'text/plain': '<Figure>' };
    const outputs = shown(
      [html, svg, png].map(data => ({ output_type: 'display_data', data }))
    );
    expect(outputs.map(one => [one.text, one.image])).toEqual([
      ['a table', ''],
      ['', ''],
      ['<Figure>', 'data:image/png;base64,AABB']
    ]);
  });

  it('shows an error by its name, without the colours of a terminal', () => {
    const error = { ename: 'KeyError', evalue: '\u001b[31misle\u001b[0m' };
    const [output] = shown([{ output_type: 'error', ...error }]);
    expect(output).toMatchObject({ text: 'KeyError: isle', isError: true });
  });

  it('takes whatever a kernel makes of an output', () => {
    const odd = [{}, { output_type: 'stream' }, { output_type: 'error' }];
    const worse = { output_type: 'display_data', data: { 'image/png': [1] } };
    expect(() => shown([...odd, worse])).not.toThrow();
    expect(shown(Array(50).fill(worse)).length).toBeLessThan(20);
  });

  it('says of what only the notebook can show that it is there', () => {
    const data = { 'application/vnd.plotly.v1+json': { data: [] } };
    const display = { output_type: 'display_data', data };
    const plain = { 'text/plain': 'a' };
    const told = shown([display, { ...display, data: plain }]);
    expect(told.map(output => output.isElsewhere)).toEqual([true, false]);
  });

  it('follows what is replaced and cleared', () => {
    const replace: Operation = {
      op: 'replace_output',
      cell_id: 'c',
      index: 0,
      output: { output_type: 'display_data', data: { 'text/plain': 'new' } }
    };
    const first = withOutput({}, printed('c', 'old'));
    expect(withOutput(first, replace).c[0].text).toBe('new');
    expect(withOutput({}, replace)).toEqual({});
    const clear: Operation = { op: 'clear_outputs', cell_id: 'c' };
    expect(withOutput(first, clear).c).toEqual([]);
  });
});
