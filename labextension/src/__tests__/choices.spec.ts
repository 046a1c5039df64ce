import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Signal } from '@lumino/signaling';

import { Choices } from '../model/choices';

describe('Choices', () => {
  const tells = { selection: true, variables: true, cells: true };
  let choices: Choices;
  let values: { [name: string]: unknown };
  let change: (name: string, value: unknown) => void;

  beforeEach(() => {
    values = { approval: 'risky', model: 'small', tells };
    const changed = new Signal<object, void>({});
    change = (name, value) => {
      values[name] = value;
      changed.emit();
    };
    const settings = {
      changed,
      get: (name: string) => ({ composite: values[name] }),
      set: async (name: string, value: unknown) => change(name, value)
    };
    choices = new Choices();
    choices.follow(settings as unknown as ISettingRegistry.ISettings);
  });

  it('begin as the settings are', () => {
    expect(choices.approval).toBe('risky');
    expect(choices.model).toBe('small');
  });

  it('keep what the pickers say when another setting changes', () => {
    choices.approval = 'ask';
    choices.model = 'far';
    choices.tell('variables', false);
    change('longText', 7);
    expect(choices.withheld).toContain('variables');
    expect(choices.longText).toBe(7);
    expect(choices.approval).toBe('ask');
    expect(choices.model).toBe('far');
  });

  it('follow a picker’s own setting, and leave the other picker', () => {
    choices.approval = 'ask';
    choices.model = 'far';
    change('approval', 'auto');
    expect(choices.approval).toBe('auto');
    expect(choices.model).toBe('far');
    change('model', '');
    expect(choices.model).toBe('');
  });

  it('allow a kernel that is known by its id, and none that has yet to start', () => {
    const choices = new Choices();
    choices.allowOwn('kernel-1', 'risky');
    expect(choices.ownApproval('kernel-1')).toBe('risky');
    choices.allowOwn('', 'auto');
    expect(choices.ownApproval('')).toBeNull();
  });
});
