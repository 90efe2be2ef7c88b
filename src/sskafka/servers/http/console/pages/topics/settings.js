/** The settings of a topic with their documentation; those of its own can be changed and reset. */
import { Badge, Button, Card, Field, Loaded } from "../../components/basics.js";
import { FormDialog } from "../../components/dialog.js";
import { SearchBox } from "../../components/table.js";
import { tell } from "../../components/toast.js";
import { send } from "../../lib/api.js";
import { useData } from "../../lib/data.js";
import { html, useState } from "../../lib/html.js";
import { SettingInput } from "./setting_input.js";

const SOURCES = {
  DYNAMIC_TOPIC_CONFIG: "this topic",
  DYNAMIC_BROKER_CONFIG: "the broker, changed while it runs",
  DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers, changed while they run",
  STATIC_BROKER_CONFIG: "the broker's properties",
  DEFAULT_CONFIG: "default",
};
const OWN = "DYNAMIC_TOPIC_CONFIG";

export function Settings({ name, mayChange, onChanged }) {
  const path = `topics/${encodeURIComponent(name)}/configs`;
  const configs = useData(path);
  const table = useData("settings/topics").data?.settings ?? [];
  const [search, setSearch] = useState("");
  const [changing, setChanging] = useState(null);
  const change = async (setting, value) => {
    await send("PATCH", path, { configs: { [setting]: value } });
    tell(value === null ? `${setting} of ${name} has its default again.` : `${setting} of ${name} is ${value} now.`);
    setChanging(null);
    configs.reload();
    onChanged();
  };
  return html`
    <${Loaded} state=${configs}>${(data) => html`
      <${Card} flush>
        <div class="table-tools"><${SearchBox} label="Search settings" value=${search} onInput=${setSearch} /></div>
        <ul class="settings">
          ${ownFirst(data.configs).filter((one) => matches(one, search)).map((one) => html`
            <${Row} key=${one.name} config=${one} onChange=${mayChange && !one.is_read_only ? () => setChanging(one) : null} />`)}
        </ul>
      <//>`}<//>
    ${changing && html`<${ChangeSetting} config=${changing} setting=${table.find((one) => one.name === changing.name)} onChange=${change} onClose=${() => setChanging(null)} />`}`;
}

const ownFirst = (configs) => [...configs.filter((one) => one.source === OWN), ...configs.filter((one) => one.source !== OWN)];
const matches = (config, search) => `${config.name} ${config.documentation ?? ""}`.toLowerCase().includes(search.toLowerCase());

const Row = ({ config, onChange }) => html`
  <li>
    <div>
      <strong class="mono">${config.name}</strong>
      ${config.source === OWN && html` <${Badge} tone="accent">own value<//>`}
      <p>${config.documentation}</p>
    </div>
    <div class="value">
      <span class="mono">${config.value === "" ? "(empty)" : config.value ?? "(secret)"}</span>
      <small>from ${SOURCES[config.source] ?? config.source}</small>
    </div>
    ${onChange && html`<${Button} aria-label=${`Change ${config.name}`} onClick=${onChange}>Change<//>`}
  </li>`;

function ChangeSetting({ config, setting, onChange, onClose }) {
  const [value, setValue] = useState(config.value ?? "");
  const reset = config.source === OWN;
  const [resets, setResets] = useState(false);
  return html`
    <${FormDialog} title=${`Change ${config.name}`} action=${resets ? "Reset" : "Change"} isReady=${resets || value !== config.value}
      onSubmit=${() => onChange(config.name, resets ? null : value)} onClose=${onClose}>
      <${Field} id="setting-value" label="Value" help=${config.documentation}>
        ${(props) => html`<${SettingInput} props=${{ ...props, disabled: resets }} setting=${setting} value=${value} onInput=${setValue} />`}
      <//>
      ${reset && html`<p><label class="check"><input type="checkbox" checked=${resets} onChange=${(event) => setResets(event.target.checked)} /> Remove the topic's own value, so that the default applies</label></p>`}
    <//>`;
}
