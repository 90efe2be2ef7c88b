/** The dialog that creates a topic. */
import { Button, Field } from "../../components/basics.js";
import { FormDialog } from "../../components/dialog.js";
import { tell } from "../../components/toast.js";
import { send } from "../../lib/api.js";
import { useData } from "../../lib/data.js";
import { html, useState } from "../../lib/html.js";
import { SettingInput } from "./setting_input.js";

export function CreateTopic({ onClose, onCreated }) {
  const [name, setName] = useState("");
  const [partitions, setPartitions] = useState("");
  const [replicas, setReplicas] = useState("");
  const [chosen, setChosen] = useState([]);
  const table = useData("settings/topics").data?.settings ?? [];

  const create = async () => {
    const configs = Object.fromEntries(chosen.filter((one) => one.name && one.value !== "").map((one) => [one.name, one.value]));
    const body = { name, partitions: count(partitions), replication_factor: count(replicas), configs };
    const created = await send("POST", "topics", body);
    tell(`Topic ${name} is created, with ${created.partitions} partitions of ${created.replication_factor} replicas.`);
    onClose();
    onCreated(name);
  };
  const change = (at, changes) => setChosen(chosen.map((one, index) => (index === at ? { ...one, ...changes } : one)));

  return html`
    <${FormDialog} title="Create a topic" action="Create" isReady=${name !== ""} onSubmit=${create} onClose=${onClose} wide>
      <${Field} id="topic-name" label="Name" help="Letters, digits, dots, dashes and underscores.">
        ${(props) => html`<input ...${props} autocomplete="off" spellcheck=${false} maxlength="249" value=${name} onInput=${(event) => setName(event.target.value)} />`}
      <//>
      <div class="columns">
        <${Field} id="topic-partitions" label="Partitions" help="Empty: num.partitions of the brokers.">
          ${(props) => html`<input ...${props} type="number" min="1" max="10000" value=${partitions} onInput=${(event) => setPartitions(event.target.value)} />`}
        <//>
        <${Field} id="topic-replicas" label="Replicas of each partition" help="Empty: default.replication.factor of the brokers.">
          ${(props) => html`<input ...${props} type="number" min="1" value=${replicas} onInput=${(event) => setReplicas(event.target.value)} />`}
        <//>
      </div>
      ${chosen.map((one, at) => html`
        <${ChosenSetting} key=${at} at=${at} chosen=${one} table=${table} onChange=${(changes) => change(at, changes)}
          onRemove=${() => setChosen(chosen.filter((_, index) => index !== at))} />`)}
      <p><${Button} kind="quiet" icon="plus" onClick=${() => setChosen([...chosen, { name: "", value: "" }])}>Add a setting<//></p>
    <//>`;
}

const count = (text) => (text === "" ? null : Number(text));

function ChosenSetting({ at, chosen, table, onChange, onRemove }) {
  const setting = table.find((one) => one.name === chosen.name);
  return html`
    <div class="chosen-setting">
      <${Field} id=${`setting-${at}`} label="Setting">
        ${(props) => html`
          <select ...${props} value=${chosen.name} onChange=${(event) => onChange({ name: event.target.value, value: "" })}>
            <option value="">Choose …</option>
            ${table.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}
          </select>`}
      <//>
      <${Field} id=${`setting-value-${at}`} label="Value" help=${setting?.documentation}>
        ${(props) => html`<${SettingInput} props=${props} setting=${setting} value=${chosen.value} onInput=${(value) => onChange({ value })} />`}
      <//>
      <${Button} kind="quiet" icon="close" aria-label="Remove this setting" onClick=${onRemove} />
    </div>`;
}
