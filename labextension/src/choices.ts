/**
 * What the person chose in the settings and in the composer's pickers.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { Approval, IAsk, PartKind } from './protocol.gen';

/** The setting's own default, which holds until the settings are read. */
const LONG_TEXT = 200_000;

const PARTS: readonly PartKind[] = ['selection', 'variables', 'cells', 'files'];

type ITells = { readonly [part in PartKind]: boolean };

/** Holds the settings' values; the pickers change them until the page is left. */
export class Choices {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get approval(): Approval {
    return this._approval;
  }
  set approval(value: Approval) {
    this._approval = value;
    this._changed.emit();
  }

  /** A model's name; empty for the server's default. */
  get model(): string {
    return this._model;
  }
  set model(value: string) {
    this._model = value;
    this._changed.emit();
  }

  /** How the model is asked, as the messages call it. */
  get sampling(): Pick<IAsk, 'dialect' | 'turn_tokens' | 'temperature'> {
    return this._sampling;
  }

  /** What of the notebook the model is not told. */
  get withheld(): PartKind[] {
    return this._withheld;
  }

  get opensPanel(): boolean {
    return this._opensPanel;
  }

  /** Characters above which printed text is drawn in part; 0 for never. */
  get longText(): number {
    return this._longText;
  }

  /** Follows the settings from now on. */
  follow(settings: ISettingRegistry.ISettings): void {
    const read = () => {
      this._approval = settings.get('approval').composite as Approval;
      this._model = settings.get('model').composite as string;
      this._sampling = {
        dialect: settings.get('dialect').composite as string,
        turn_tokens: settings.get('turnTokens').composite as number,
        temperature: settings.get('temperature').composite as number | null
      };
      this._withheld = PARTS.filter(
        part => !(settings.get('tells').composite as ITells)[part]
      );
      this._opensPanel = settings.get('opensPanel').composite as boolean;
      this._longText = settings.get('longText').composite as number;
      this._changed.emit();
    };
    settings.changed.connect(read);
    read();
  }

  private _approval: Approval = 'risky';
  private _model = '';
  private _sampling: Choices['sampling'] = {
    dialect: 'auto',
    turn_tokens: 0,
    temperature: null
  };
  private _withheld: PartKind[] = [];
  private _opensPanel = false;
  private _longText = LONG_TEXT;
  private _changed = new Signal<this, void>(this);
}
