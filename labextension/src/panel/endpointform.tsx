import { useId, useRef, useState } from 'react';
import type { FormEvent, ReactElement, ReactNode } from 'react';

import { usePanel } from './context';
import { fieldOf, useQuestions } from '../model/endpointquestions';
import type { IAskProps, IQuestions } from '../model/endpointquestions';
import type { IAbility, IModelState, IPreset } from '../channel/rest';

/** What the fields may look like when they are filled in. */
const ADDRESS = 'https://api.openai.com/v1';
const MODEL = 'gpt-4.1-mini';

/** An endpoint's address, key and model: list its models, test it, connect it. */
export function EndpointForm(
  props: { state: IModelState } & IAskProps
): ReactElement {
  const { trans } = usePanel();
  const { endpoint, endpoints, presets } = props.state;
  const form = useRef<HTMLFormElement>(null);
  const [url, setUrl] = useState(endpoint?.base_url ?? '');
  const questions = useQuestions(form, props);
  const preset = presetAt(presets, url);
  const choose = (chosen: IPreset | undefined) => {
    fieldOf(form, 'url').value = chosen?.base_url ?? '';
    setUrl(chosen?.base_url ?? '');
    questions.change('url');
  };
  const onInput = (event: FormEvent<HTMLFormElement>) => {
    const { name } = event.target as HTMLInputElement;
    if (name === 'url') {
      setUrl(fieldOf(form, 'url').value);
    }
    questions.change(name);
  };
  return (
    <form
      ref={form}
      className="jp-dm-Setup-way"
      data-testid="dm-endpoint"
      autoComplete="off"
      onInput={onInput}
      onSubmit={event => {
        event.preventDefault();
        void questions.connect();
      }}
    >
      <h4>{trans.__('An endpoint')}</h4>
      <p>
        {trans.__(
          'Any service that speaks the OpenAI interface. Your questions, names and samples of columns, and what cells print will go to it.'
        )}
      </p>
      <PresetChoice presets={presets} chosen={preset} onChoose={choose} />
      <Field
        name="url"
        label={trans.__('Address')}
        placeholder={ADDRESS}
        value={endpoint?.base_url}
      />
      <BlankHint blank={preset?.blank ?? ''} url={url} />
      <Field
        name="key"
        label={trans.__('Key')}
        placeholder={keyWords()}
        isKey
      />
      <ModelField value={endpoint?.model} questions={questions} />
      <WhereKept inKeyring={props.state.uses_keyring} />
      <Buttons questions={questions} />
      <p role="status" data-testid="dm-endpoint-said">
        {questions.said}
      </p>
      {questions.rows && <Abilities rows={questions.rows} />}
    </form>
  );

  function keyWords(): string {
    if (endpoints.some(one => one.has_key && one.base_url === url)) {
      return trans.__('Empty: the kept key');
    }
    return preset && !preset.needs_key ? trans.__('Usually none') : '';
  }
}

function WhereKept(props: { inKeyring: boolean }): ReactElement {
  const { trans } = usePanel();
  return (
    <p className="jp-dm-Leaving">
      {props.inKeyring
        ? trans.__(
            'The key is kept in your account’s keyring on the server. No notebook or log gets it.'
          )
        : trans.__(
            'The key is kept in a file that only your account on the server can read. No notebook, restricted kernel or log gets it.'
          )}
    </p>
  );
}

/** Says which part of a preset's address is the person's to fill in. */
function BlankHint(props: { blank: string; url: string }): ReactElement {
  const { trans } = usePanel();
  const { blank, url } = props;
  return (
    <p className="jp-dm-Leaving" role="status" data-testid="dm-blank">
      {blank && url.includes(blank)
        ? trans.__('Replace %1 with your own name.', blank)
        : ''}
    </p>
  );
}

/** The preset of an address, its blank filled in or not. */
function presetAt(
  presets: readonly IPreset[],
  url: string
): IPreset | undefined {
  return presets.find(({ base_url, blank }) => {
    const [before, after] = blank ? base_url.split(blank) : [base_url, ''];
    return blank
      ? url.startsWith(before) && url.endsWith(after)
      : url.replace(/\/+$/, '') === before;
  });
}

function PresetChoice(props: {
  presets: readonly IPreset[];
  chosen: IPreset | undefined;
  onChoose: (preset: IPreset | undefined) => void;
}): ReactElement {
  const { trans } = usePanel();
  const { chosen, onChoose, presets } = props;
  return (
    <label className="jp-dm-Field">
      <span>{trans.__('Service')}</span>
      <select
        className="jp-dm-Input"
        data-testid="dm-endpoint-preset"
        value={chosen?.name ?? ''}
        onChange={event =>
          onChoose(presets.find(one => one.name === event.target.value))
        }
      >
        <option value="">{trans.__('Another address')}</option>
        {presets.map(({ name, title }) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The model's name: typed, or chosen from the endpoint's own list. */
function ModelField(props: {
  value?: string;
  questions: IQuestions;
}): ReactElement {
  const { trans } = usePanel();
  const { questions, value } = props;
  const listId = useId();
  const row = useRef<HTMLDivElement>(null);
  const list = async () => {
    const isListed = await questions.list();
    const focused = document.activeElement;
    // Not where the person has gone elsewhere meanwhile.
    if (
      isListed &&
      focused?.tagName === 'BUTTON' &&
      row.current?.contains(focused)
    ) {
      row.current.querySelector('input')?.focus();
    }
  };
  return (
    <div className="jp-dm-Field-row" ref={row}>
      <Field
        name="model"
        label={trans.__('Model')}
        placeholder={MODEL}
        value={value}
        listId={listId}
      />
      <datalist id={listId} data-testid="dm-endpoint-models">
        {questions.names.map(name => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <AskButton id="dm-list-models" questions={questions} onAsk={list}>
        {trans.__('List models')}
      </AskButton>
    </div>
  );
}

function Buttons(props: { questions: IQuestions }): ReactElement {
  const { trans } = usePanel();
  const { questions } = props;
  const { asking, test } = questions;
  return (
    <div className="jp-dm-Buttons">
      <AskButton id="dm-test-endpoint" questions={questions} onAsk={test}>
        {asking === 'test' ? trans.__('Testing…') : trans.__('Test')}
      </AskButton>
      <AskButton id="dm-connect" questions={questions}>
        {asking === 'connect' ? trans.__('Connecting…') : trans.__('Connect')}
      </AskButton>
    </div>
  );
}

/** Keeps the focus while the endpoint is asked, which a disabled button would lose. */
function AskButton(props: {
  id: string;
  questions: IQuestions;
  /** Left out for the button that sends the form. */
  onAsk?: () => Promise<unknown>;
  children: ReactNode;
}): ReactElement {
  const { children, id, onAsk, questions } = props;
  return (
    <button
      type={onAsk ? 'button' : 'submit'}
      className={onAsk ? 'jp-dm-Button' : 'jp-dm-Button jp-mod-accept'}
      data-testid={id}
      aria-disabled={questions.asking !== ''}
      onClick={onAsk && (() => void onAsk())}
    >
      {children}
    </button>
  );
}

function Abilities(props: { rows: readonly IAbility[] }): ReactElement {
  const { trans } = usePanel();
  const words = (isThere: boolean | null) =>
    isThere === null
      ? trans.__('not known')
      : isThere
        ? trans.__('yes')
        : trans.__('no');
  return (
    <table
      className="jp-dm-Abilities"
      data-testid="dm-abilities"
      aria-label={trans.__('What the endpoint can do')}
    >
      <thead>
        <tr>
          <th scope="col">{trans.__('Ability')}</th>
          <th scope="col">{trans.__('There')}</th>
        </tr>
      </thead>
      <tbody>
        {props.rows.map(({ how, is_there, name }) => (
          <tr key={name}>
            <td>
              {name}
              <small>{how}</small>
            </td>
            <td>{words(is_there)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Field(props: {
  name: string;
  label: string;
  placeholder?: string;
  value?: string;
  listId?: string;
  isKey?: boolean;
}): ReactElement {
  const { isKey, label, listId, name, placeholder, value } = props;
  return (
    <label className="jp-dm-Field">
      <span>{label}</span>
      <input
        name={name}
        type={isKey ? 'password' : 'text'}
        className="jp-dm-Input"
        data-testid={`dm-endpoint-${name}`}
        placeholder={placeholder}
        defaultValue={value}
        list={listId}
        required={!isKey}
        // A password manager would keep the key, and fill in another one.
        autoComplete={isKey ? 'new-password' : 'off'}
        spellCheck={false}
      />
    </label>
  );
}
