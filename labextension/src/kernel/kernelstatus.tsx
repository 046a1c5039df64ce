import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { useCallback } from 'react';
import type { ReactElement } from 'react';

import { useFramedSignal, useSignal } from '../panel/context';
import { unseenWords } from '../model/filewords';
import type { IKernelMeter } from '../protocol.gen';
import type { IAnalyst } from '../model/tokens';
import { layerWords } from '../model/wording';

const MEBIBYTE = 1024 * 1024;
/** Share of a limit from which on the person is warned. */
const NEARLY = 0.85;

/** In the status bar: whether the notebook's kernel is restricted, and how full it is. */
export class KernelStatus extends ReactWidget {
  constructor(
    private readonly _analyst: IAnalyst,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-dm-KernelStatus');
  }

  protected override render(): ReactElement {
    return <KernelStatusView analyst={this._analyst} trans={this._trans} />;
  }
}

function KernelStatusView(props: {
  analyst: IAnalyst;
  trans: TranslationBundle;
}): ReactElement | null {
  const { analyst, trans } = props;
  const path = useSignal(
    analyst.currentChanged,
    useCallback(() => analyst.currentPath, [analyst])
  );
  const meter = useFramedSignal(
    analyst.model.changed,
    useCallback(() => analyst.model.notebook(path).meter, [analyst, path])
  );
  if (!path || !meter) {
    return null;
  }
  const lines = meterLines(meter, trans);
  const show = () =>
    showDialog({
      title: trans.__('The notebook’s kernel'),
      body: (
        <ul className="jp-dm-Layers">
          {lines.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      ),
      buttons: [Dialog.okButton({ label: trans.__('Close') })]
    });
  return (
    <button
      type="button"
      className="jp-dm-KernelStatus-button"
      data-testid="dm-kernel-status"
      data-restricted={meter.is_restricted}
      title={lines.join('\n')}
      onClick={() => void show()}
    >
      {statusText(meter, trans)}
    </button>
  );
}

/** The few words in the bar. */
export function statusText(
  meter: IKernelMeter,
  trans: TranslationBundle
): string {
  if (!meter.is_restricted) {
    return trans.__('⚠ Not restricted');
  }
  const isNearlyFull =
    share(meter.memory_bytes, meter.memory_limit_bytes) > NEARLY ||
    share(meter.cpu_s, meter.cpu_limit_s) > NEARLY;
  const parts = [
    trans.__('Restricted'),
    memoryText(meter, trans),
    timeText(meter, trans)
  ];
  if (isNearlyFull) {
    parts.unshift(trans.__('⚠ Nearly at a limit'));
  } else if (meter.layers_missing.length > 0) {
    parts.unshift('⚠');
  }
  return parts.join(' · ');
}

function meterLines(meter: IKernelMeter, trans: TranslationBundle): string[] {
  const lines = meter.is_restricted
    ? [
        trans.__('This kernel is restricted.'),
        trans.__('Memory: %1', memoryText(meter, trans)),
        trans.__('Processor time: %1', timeText(meter, trans)),
        trans.__(
          'Processes: %1 of %2',
          meter.processes,
          meter.process_limit || '∞'
        )
      ]
    : [
        trans.__(
          'This kernel is not restricted: what runs in it can do all that you can.'
        )
      ];
  if (meter.layers_active.length > 0) {
    lines.push(trans.__('Active: %1', layerWords(meter.layers_active)));
  }
  if (meter.layers_missing.length > 0) {
    lines.push(trans.__('Missing: %1', layerWords(meter.layers_missing)));
  }
  const unseen = unseenWords(meter, trans);
  return unseen ? [...lines, unseen] : lines;
}

function memoryText(meter: IKernelMeter, trans: TranslationBundle): string {
  const used = Math.round(meter.memory_bytes / MEBIBYTE);
  const limit = Math.round(meter.memory_limit_bytes / MEBIBYTE);
  return limit > 0
    ? trans.__('%1 of %2 MiB', used, limit)
    : trans.__('%1 MiB', used);
}

function timeText(meter: IKernelMeter, trans: TranslationBundle): string {
  const used = Math.round(meter.cpu_s);
  const limit = Math.round(meter.cpu_limit_s);
  return limit > 0
    ? trans.__('%1 of %2 s', used, limit)
    : trans.__('%1 s', used);
}

function share(used: number, limit: number): number {
  return limit > 0 ? used / limit : 0;
}
