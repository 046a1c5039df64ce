import { Choices } from '../model/choices';
import { Drafts } from '../model/draft';
import type { IReadAhead } from '../protocol.gen';
import { tellFilesEarly } from '../model/readahead';

const PATH = 'book.ipynb';

describe('tellFilesEarly', () => {
  let drafts: Drafts;
  let choices: Choices;
  let sent: IReadAhead[];

  beforeEach(() => {
    jest.useFakeTimers();
    drafts = new Drafts();
    choices = new Choices();
    sent = [];
    tellFilesEarly(drafts, choices, message => sent.push(message));
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('tells which files a question will be about, once they are chosen', () => {
    drafts.addFile(PATH, 'one.csv');
    jest.advanceTimersByTime(100);
    drafts.addFile(PATH, 'two.csv');
    jest.advanceTimersByTime(1000);
    expect(sent).toEqual([
      {
        kind: 'read_ahead',
        notebook_path: PATH,
        files: ['one.csv', 'two.csv'],
        model: ''
      }
    ]);
  });

  it('says nothing more while the question is written', () => {
    drafts.addFile(PATH, 'one.csv');
    jest.advanceTimersByTime(1000);
    drafts.change(PATH, { text: 'How many' });
    drafts.change(PATH, { text: 'How many rows?' });
    jest.advanceTimersByTime(1000);
    expect(sent).toHaveLength(1);
  });

  it('says nothing of words alone, nor of a file that is taken out at once', () => {
    drafts.change(PATH, { text: 'How many rows?' });
    drafts.addFile(PATH, 'one.csv');
    drafts.change(PATH, { files: [] });
    jest.advanceTimersByTime(1000);
    expect(sent).toHaveLength(0);
  });

  it('tells another model as well', () => {
    drafts.addFile(PATH, 'one.csv');
    jest.advanceTimersByTime(1000);
    choices.model = 'another';
    jest.advanceTimersByTime(1000);
    expect(sent.map(message => message.model)).toEqual(['', 'another']);
  });
});
