/** Who looks at which broker, and whether changes are allowed: read once, from /api/v1/console. */
import { get } from "./api.js";
import { store, useStore } from "./store.js";

const session = store({ node_id: null, version: "", principal: "", is_read_only: true, features: [], is_known: false });

export const useSession = () => useStore(session);

/** Whether actions are shown. Until the answer is there, none are. */
export const useMayChange = () => !useStore(session).is_read_only;

export async function loadSession() {
  try {
    session.set({ ...(await get("console")), is_known: true });
  } catch {
    setTimeout(loadSession, 2000); // the live connection says what is wrong
  }
}
