/**
 * What the person chose in the settings and in the composer's pickers.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ChannelClient } from '../channel/client';
import type { Approval, IAsk, PartKind } from '../protocol.gen';
import type { IQuestion } from './tokens';

/** The setting's own default, which holds until the settings are read. */
const LONG_TEXT = 200_000;

/** What a new connection was told of the settings. */
const NEVER = '?';

/** What of the notebook can be switched off. */
export const PARTS: readonly PartKind[] = [
  'selection',
  'variables',
  'cells',
  'files',
  'earlier'
];

/** What goes with a question, as it was chosen when the person asked it. */
export interface IChosen extends Pick<
  IAsk,
  'dialect' | 'turn_tokens' | 'temperature'
> {
  readonly model: string;
  readonly approval: Approval;
}

/** The choices of cells that wait, in the words that a person reads. */
export function approvalOptions(
  trans: TranslationBundle
): { value: Approval; label: string }[] {
  return [
    { value: 'ask', label: trans.__('Ask for each cell') },
    { value: 'risky', label: trans.__('Ask for risky cells') },
    { value: 'auto', label: trans.__('Run all cells') }
  ];
}

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

  /** Which cells wait in a kernel that is not restricted; `null` where none may run at all. */
  ownApproval(kernelId: string): Approval | null {
    return this._ownKernels.get(kernelId) ?? null;
  }

  /** The person lets a kernel of theirs be used as it is; one that this page does not see, once. */
  allowOwn(kernelId: string, approval: Approval): void {
    if (kernelId) {
      this._ownKernels.set(kernelId, approval);
      this._changed.emit();
    }
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
  get sampling(): Pick<
    IAsk,
    'dialect' | 'turn_tokens' | 'temperature' | 'pictures'
  > {
    return this._sampling;
  }

  /** What goes with a question that is asked now. */
  get chosen(): IChosen {
    const { approval, model, sampling } = this;
    return { model, approval, ...sampling };
  }

  /** What of the notebook the model is not told. */
  get withheld(): PartKind[] {
    return this._withheld;
  }

  /** Whether the settings are read: before that nobody knows what they switch off. */
  get isRead(): boolean {
    return this._settings !== null;
  }

  /** Tells the model of a part of the notebook from now on, or no longer. */
  tell(part: PartKind, isTold: boolean): void {
    this._withheld = PARTS.filter(one =>
      one === part ? !isTold : this._withheld.includes(one)
    );
    this._changed.emit();
    const tells = PARTS.map(one => [one, !this._withheld.includes(one)]);
    void this._settings?.set('tells', Object.fromEntries(tells));
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
    this._settings = settings;
    const read = () => {
      this._readPickers(
        settings.get('approval').composite as Approval,
        settings.get('model').composite as string
      );
      this._sampling = {
        dialect: settings.get('dialect').composite as string,
        turn_tokens: settings.get('turnTokens').composite as number,
        temperature: settings.get('temperature').composite as number | null,
        pictures: settings.get('pictures').composite as boolean
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

  /** A picker keeps what the person chose in it until its own setting is another one. */
  private _readPickers(approval: Approval, model: string): void {
    const last = this._lastRead;
    if (approval !== last.approval) {
      this._approval = approval;
    }
    if (model !== last.model) {
      this._model = model;
    }
    this._lastRead = { approval, model };
  }

  private _approval: Approval = 'risky';
  private readonly _ownKernels = new Map<string, Approval>();
  private _model = '';
  /** The settings of the pickers, with the defaults until they are read. */
  private _lastRead = { approval: this._approval, model: this._model };
  private _sampling: Choices['sampling'] = {
    dialect: 'auto',
    turn_tokens: 0,
    temperature: null,
    pictures: false
  };
  private _withheld: PartKind[] = [];
  private _settings: ISettingRegistry.ISettings | null = null;
  private _opensPanel = false;
  private _longText = LONG_TEXT;
  private _changed = new Signal<this, void>(this);
}

/**
 * Tells the server what is withheld, with each connection and as it changes: a question that a cell
 * hands over does not pass through the page.
 */
export function tellWithheld(
  choices: Choices,
  client: Pick<ChannelClient, 'connectionChanged' | 'isConnected' | 'send'>
): void {
  let told = NEVER;
  const tell = () => {
    const { isRead, withheld } = choices;
    const text = withheld.join();
    if (isRead && client.isConnected && text !== told) {
      client.send({ kind: 'tells', withheld });
      told = text;
    }
  };
  client.connectionChanged.connect(() => {
    told = NEVER;
    tell();
  });
  choices.changed.connect(tell);
}

/** From the choice that asks most often to the one that asks least. */
const APPROVALS: readonly Approval[] = ['ask', 'risky', 'auto'];

/** Which cells wait: in a kernel that is not restricted no fewer than the person agreed to. */
export function approvalOf(
  own: Approval | null,
  question: Pick<IQuestion, 'approval' | 'chosen'>,
  chosen: Approval
): Approval {
  if (!own) {
    return question.approval ?? chosen;
  }
  const agreed = [own, question.approval ? 'ask' : own];
  if (question.chosen) {
    agreed.push(chosen);
  }
  return APPROVALS.find(one => agreed.includes(one)) ?? 'ask';
}
