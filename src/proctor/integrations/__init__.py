"""Proctor's exams as other harnesses call them: vla-eval and LeRobot. Nothing else imports their packages."""
