import plugin from '../index';

describe('the plugin', () => {
  it('has the id that its settings schema is filed under', () => {
    expect(plugin.id).toBe('dm-jupyter:plugin');
  });
});
