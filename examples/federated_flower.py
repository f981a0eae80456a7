"""Three holders in Flower's simulation find centers together, and give what their pooled rows would give.

Flower carries the messages and calls the holders. Each release takes one round: the question goes out, and
each holder sends its total plus a mask. Every pair of holders has agreed on a key (X25519) that the driver
does not know; from it both draw the same numbers (ChaCha20), which one adds and the other subtracts, so the
masks cancel in the sum modulo 2**64. All holders must answer: who drops out stops the fit.

``pip install pemeans 'flwr[simulation]'``, then ``python examples/federated_flower.py``. For study: made-up
rows, a seed, and keys that nobody vouches for. In earnest each holder must know whose key it is.
"""

from __future__ import annotations

import warnings
from functools import reduce

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from pemeans import Domain, DPKMeans
from pemeans.kernels.grid import IntArray
from pemeans.rows.federated import Federation, Holder

HOLDERS, ROWS, COLUMNS = 3, 3000, 4
DOMAIN = Domain.box(-10, 10)


def made_up(holder: int) -> npt.NDArray[np.float64]:
    """The rows of one holder: more of them at holders of higher numbers, around centers of its own."""
    rng = np.random.default_rng(holder)
    return rng.normal(3.0 * holder - 3.0, 1.0, size=(ROWS * (holder + 1), COLUMNS))


def estimator() -> DPKMeans:
    return DPKMeans(3, epsilon=1.0, domain=DOMAIN, random_state=0)


# --- A holder ----------------------------------------------------------------------------------------------

app = ClientApp()


def holder_of(number: int) -> Holder:
    """Made anew for each message, as the simulation runs them anywhere."""
    return Holder(made_up(number), n_jobs=1)


def record(context: Context) -> ConfigRecord:
    """What this holder remembers from message to message."""
    if "own" not in context.state.config_records:
        context.state.config_records["own"] = ConfigRecord(
            {"key": X25519PrivateKey.generate().private_bytes_raw()}
        )
    return context.state.config_records["own"]


@app.query()
def meet(message: Message, context: Context) -> Message:
    """Say who is there: a public key, and how many rows."""
    number = int(context.node_config["partition-id"])
    key = X25519PrivateKey.from_private_bytes(record(context)["key"])
    facts = {"key": key.public_key().public_bytes_raw(), "rows": holder_of(number).n_rows}
    return Message(RecordDict({"facts": ConfigRecord(facts)}), reply_to=message)


@app.train()
def answer(message: Message, context: Context) -> Message:
    """The masked total of a question."""
    asked = message.content.config_records["question"]
    total = holder_of(int(context.node_config["partition-id"])).total(asked["question"])
    own = X25519PrivateKey.from_private_bytes(record(context)["key"])
    masked = total.ravel().view(np.uint64)
    for key in asked["keys"]:
        if key != own.public_key().public_bytes_raw():
            mask = stream(own.exchange(X25519PublicKey.from_public_bytes(key)), asked["round"], masked.size)
            masked = masked + mask if key > own.public_key().public_bytes_raw() else masked - mask
    reply = ConfigRecord({"masked": masked.tobytes(), "shape": list(total.shape)})
    return Message(RecordDict({"reply": reply}), reply_to=message)


def stream(secret: bytes, round_number: int, size: int) -> npt.NDArray[np.uint64]:
    """Numbers that only the two who share a secret can draw, new ones for each round."""
    info = b"pemeans federated example, round %d" % round_number
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret)
    cipher = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * size)), dtype=np.uint64)


# --- The driver --------------------------------------------------------------------------------------------

server = ServerApp()


@server.main()
def drive(grid: Grid, context: Context) -> None:
    """Fit on the federation, and compare with a fit of the pooled rows, which only a study can do."""
    warnings.simplefilter("ignore")
    while len(nodes := sorted(grid.get_node_ids())) < HOLDERS:
        pass

    def everybody(kind: str, content: RecordDict) -> list[Message]:
        sent = [Message(content, dst_node_id=node, message_type=kind) for node in nodes]
        replies = list(grid.send_and_receive(sent))
        if len(replies) < len(nodes) or any(reply.has_error() for reply in replies):
            raise RuntimeError("a holder did not answer; without its mask the sum is noise")
        return replies

    facts = [reply.content.config_records["facts"] for reply in everybody("query", RecordDict())]
    keys = [fact["key"] for fact in facts]
    rounds = iter(range(1 << 30))

    def ask(question: bytes) -> IntArray:
        asked = ConfigRecord({"question": question, "keys": keys, "round": next(rounds)})
        replies = [
            reply.content.config_records["reply"]
            for reply in everybody("train", RecordDict({"question": asked}))
        ]
        masked = [np.frombuffer(reply["masked"], dtype=np.uint64) for reply in replies]
        return reduce(np.add, masked).view(np.int64).reshape(replies[0]["shape"])

    together = estimator().fit(Federation(ask, sum(fact["rows"] for fact in facts), COLUMNS))
    pooled = estimator().fit(np.concatenate([made_up(holder) for holder in range(HOLDERS)]))
    print(together.cluster_centers_.round(2), together.cluster_sizes_)
    print(f"Releases, each one round: {len(together.receipt_.releases)}")
    print(f"Bit for bit the pooled fit: {(together.cluster_centers_ == pooled.cluster_centers_).all()}")


if __name__ == "__main__":
    one_core = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server, app, num_supernodes=HOLDERS, backend_config=one_core)
