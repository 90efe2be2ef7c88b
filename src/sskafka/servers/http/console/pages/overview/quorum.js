/** The quorum of controllers: who leads, how far the voters are, and the last elections. Keyed by its epoch. */
import { Badge, Card, Loaded } from "../../components/basics.js";
import { ago, number, time } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { useData } from "../../lib/data.js";

export function Quorum({ quorum }) {
  const elections = useData("quorum/elections", { limit: 5 });
  return html`
    <${Card} title="Quorum of controllers">
      <p>${quorum.leader_id >= 0 ? html`Node <strong>${quorum.leader_id}</strong> leads` : "No node leads"} in epoch ${number(quorum.leader_epoch)}.
        ${" "}<span class="muted">High watermark of the metadata log: ${number(quorum.high_watermark)}.</span></p>
      <ul class="voters">
        ${quorum.voters.map((voter) => html`
          <li key=${voter.node_id}>
            <strong>Node ${voter.node_id}</strong>
            <${Badge} tone=${voter.node_id === quorum.leader_id ? "accent" : ""}>${voter.node_id === quorum.leader_id ? "leader" : "voter"}<//>
            <span class="muted">lag ${number(voter.lag)}</span>
          </li>`)}
      </ul>
      <h3>Last elections</h3>
      <${Loaded} state=${elections}>${(data) => html`
        <ol class="elections">
          ${data.elections.map((one) => html`
            <li key=${one.leader_epoch}>
              <span>epoch ${number(one.leader_epoch)}: node ${one.leader_id}</span>
              <span class="muted" title=${time(one.time_ms)}>${ago(one.time_ms)}, by the votes of ${one.granting_voters.join(", ")}</span>
            </li>`)}
        </ol>`}<//>
    <//>`;
}
