import type { ReactElement } from 'react';

import { usePanel } from './context';
import type { IDataCandidate } from '../protocol.gen';

/** Why a question was not sent: nothing says what it is about, or a word of it names nothing. */
export interface IUnclear {
  readonly sentence: string;
  readonly candidates: readonly IDataCandidate[];
  /** The word after the `@`, or the file's name, that is unclear; empty where there is none. */
  readonly word: string;
}

/** Asks back what a question is about. */
export function WhichData(props: {
  unclear: IUnclear;
  onChoose: (candidate: IDataCandidate) => void;
  onWithoutData: () => void;
  onDismiss: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { onChoose, onDismiss, onWithoutData, unclear } = props;
  return (
    <div className="jp-dm-WhichData" data-testid="dm-which-data" role="alert">
      <p>{unclear.sentence}</p>
      <div className="jp-dm-Choices">
        {unclear.candidates.map(candidate => (
          <button
            key={`${candidate.kind} ${candidate.name}`}
            type="button"
            className="jp-dm-Button"
            data-testid="dm-candidate"
            title={
              candidate.kind === 'file'
                ? trans.__('The file %1', candidate.name)
                : trans.__('The table %1 of the kernel', candidate.name)
            }
            onClick={() => onChoose(candidate)}
          >
            {candidate.name}
          </button>
        ))}
        {!unclear.word && (
          <button
            type="button"
            className="jp-dm-Button"
            data-testid="dm-without-data"
            onClick={onWithoutData}
          >
            {trans.__('Ask without data')}
          </button>
        )}
        <button type="button" className="jp-dm-Button" onClick={onDismiss}>
          {trans.__('Change the question')}
        </button>
      </div>
    </div>
  );
}
