"""How pick-and-place is put to the policy servers of others: under which names they see what."""

from __future__ import annotations

from proctor.core.types import DialectDefaults, SentObservation

DIALECTS = DialectDefaults(
    observations={
        # 224 x 224 is what the models of openpi see in the end; its own clients scale before they send, too.
        "openpi": SentObservation(
            entries={
                "observation/image": "rgb_head",
                "observation/wrist_image": "rgb_wrist",
                "observation/state": "qpos",
                "prompt": "instruction",
            },
            resize={"rgb_head": (224, 224), "rgb_wrist": (224, 224)},
        ),
        "vla-eval": SentObservation(
            entries={
                "images": {"head": "rgb_head", "wrist": "rgb_wrist"},
                "states": "qpos",
                "task_description": "instruction",
            }
        ),
        "roboarena": SentObservation(
            entries={
                "observation/exterior_image_0_left": "rgb_head",
                "observation/wrist_image_left": "rgb_wrist",
                "observation/joint_position": "qpos",
                "observation/gripper_position": "gripper_state",
                "prompt": "instruction",
            },
            resize={"rgb_head": (224, 224), "rgb_wrist": (224, 224)},
        ),
        "xpolicylab": SentObservation(
            entries={
                "vision": {"cam_head": {"color": "rgb_head"}, "cam_wrist": {"color": "rgb_wrist"}},
                "state": {
                    "arm_joint_state": "qpos",
                    "ee_joint_state": "gripper_state",
                    "ee_pose": "ee_pose",
                },
                "instruction": "instruction",
            }
        ),
        "lerobot": SentObservation(
            entries={"pixels": {"head": "rgb_head", "wrist": "rgb_wrist"}, "agent_pos": "qpos"}
        ),
        "gr00t": SentObservation(
            entries={
                "video": {"head": "rgb_head", "wrist": "rgb_wrist"},
                "state": {"qpos": "qpos"},
                "language": {"task": "instruction"},
            }
        ),
    },
    action_kinds={"joint_position": (7, 10), "ee_pose_target": (8,)},
)
