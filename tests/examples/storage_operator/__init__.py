"""The storage operator: killed between any two requests, and run twice, on the embedded server and on the real one."""
