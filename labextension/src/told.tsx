import type { ReactElement } from 'react';

import { usePanel } from './context';
import type { IRunPicture } from './pictures';

/** Everything that the model was told beside the question, for whoever wants to look. */
export function Told(props: { run: IRunPicture }): ReactElement | null {
  const { trans } = usePanel();
  const { told } = props.run;
  const titles: { readonly [kind: string]: string } = {
    data: trans.__('The data'),
    earlier: trans.__('Asked before'),
    selection: trans.__('The selected cell'),
    variables: trans.__('Variables'),
    cells: trans.__('Cells'),
    files: trans.__('Files near by')
  };
  if (told.length === 0) {
    return null;
  }
  return (
    <details className="jp-dm-Told" data-testid="dm-told">
      <summary>{trans.__('What the model saw')}</summary>
      {told.map(({ kind, text }, index) => (
        <section key={index} aria-label={titles[kind] ?? kind}>
          <h5>{titles[kind] ?? kind}</h5>
          <pre tabIndex={0}>{text}</pre>
        </section>
      ))}
      <p>
        {trans.__(
          'Each part of the notebook can be switched off in the settings.'
        )}
      </p>
    </details>
  );
}
